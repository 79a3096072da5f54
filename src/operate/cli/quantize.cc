// `systole quantize MODEL --out FOLDER`: a published model with its matrices in int8, as a folder that is served.

#include <cmath>

#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "operate/cli/command.h"
#include "operate/cli/device_options.h"
#include "operate/run/held_out_text.h"
#include "operate/run/quantize_model.h"

namespace systole::cli {
namespace {

struct QuantizeCommand {
  std::string model, text, weights = "int8", backend = "cpu";
  QuantizeOptions quantize;
};

ExitCode quantize(const QuantizeCommand& options, Context& context) {
  QuantizeOptions wanted = options.quantize;
  const ServedModel served = find_model(options.model).value();
  wanted.text = options.text.empty() ? std::string(kHeldOutText) : read_text_file(options.text).value();
  const Machine machine = machine_for(served, options.backend, context.clock).value();
  const QuantizedModel made = quantize_model(served, machine, wanted).value();
  context.out.data(fmt::format("bits per byte of {} held out: {:.4f} stored, {:.4f} in int8: {:.2f}% apart",
                               counted(made.stored.tokens, "token"), made.stored.per_byte(), made.int8.per_byte(),
                               made.percent));
  if (made.written) context.out.data(fmt::format("{}: weights in int8, {}", wanted.out, to_string(made.bytes)));
  context.out.json(Node::map({{"from", served.name},
                              {"out", wanted.out},
                              {"weights", options.weights},
                              {"written", made.written},
                              {"bytes", made.bytes.count()},
                              {"tokens", made.stored.tokens},
                              {"text_bytes", made.stored.bytes},
                              {"stored_bits_per_byte", made.stored.per_byte()},
                              {"int8_bits_per_byte", made.int8.per_byte()},
                              {"error_percent", made.percent},
                              {"limit_percent", wanted.limit}}));
  if (made.written) return ExitCode::done;
  context.out.error(error(ErrorKind::does_not_fit,
                          "int8 changes bits per byte by {:.2f}%, the limit is {}%: nothing was written", made.percent,
                          wanted.limit)
                        .hinted(fmt::format("--limit {:.1f} takes it all the same; --text with a text such as it will "
                                            "read measures it better",
                                            std::ceil(made.percent * 10) / 10)));
  return ExitCode::no;
}

}  // namespace

void add_quantize(Subcommand app, Context& context) {
  auto options = std::make_shared<QuantizeCommand>();
  Subcommand command = add_command(app, "quantize", "a model's matrices in int8, as a folder that loads at once",
                                   options, context, quantize);
  command.add_option("model", options->model, "the folder of a Hugging Face model that writes text, or a GGUF file")
      .required();
  command
      .add_option("--out", options->quantize.out,
                  "the folder to make, which serve, generate, embed, batch and eval take as a model")
      .required();
  command.add_option("--weights", options->weights, "int8: a scale for each output of a matrix")
      .check(one_of({"int8"}))
      .capture_default_str();
  command.add_option(
      "--text", options->text,
      "a file with a text that the model was not trained on, whose beginning measures the error; without: "
      "a short one of prose");
  command
      .add_option("--limit", options->quantize.limit,
                  "most percent by which int8 may change bits per byte; if it is more, nothing is written")
      .check(not_negative())
      .capture_default_str();
  add_device_options(command, options->backend);
}

}  // namespace systole::cli
