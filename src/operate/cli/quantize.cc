// `systole quantize MODEL --out FOLDER`: a published model with its matrices in int8 or int4, as a folder that is served.

#include <cmath>

#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "ground/tensor/int4.h"
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
  wanted.parameter = packed_type(options.weights);
  const ServedModel served = find_model(options.model).value();
  wanted.text = options.text.empty() ? std::string(kHeldOutText) : read_text_file(options.text).value();
  const Machine machine = machine_for(served, options.backend, context.clock).value();
  const QuantizedModel made = quantize_model(served, machine, wanted).value();
  context.out.data(fmt::format("bits per byte of {} held out: {:.4f} stored, {:.4f} in {}: {:.2f}% apart",
                               counted(made.stored.tokens, "token"), made.stored.per_byte(), made.packed.per_byte(),
                               options.weights, made.percent));
  if (made.written)
    context.out.data(fmt::format("{}: weights in {}, {}", wanted.out, options.weights, to_string(made.bytes)));
  context.out.json(Node::map({{"from", served.name},
                              {"out", wanted.out},
                              {"weights", options.weights},
                              {"written", made.written},
                              {"bytes", made.bytes.count()},
                              {"tokens", made.stored.tokens},
                              {"text_bytes", made.stored.bytes},
                              {"stored_bits_per_byte", made.stored.per_byte()},
                              {options.weights + "_bits_per_byte", made.packed.per_byte()},
                              {"error_percent", made.percent},
                              {"limit_percent", wanted.limit}}));
  if (made.written) return ExitCode::done;
  context.out.error(error(ErrorKind::does_not_fit,
                          "{} changes bits per byte by {:.2f}%, the limit is {}%: nothing was written", options.weights,
                          made.percent, wanted.limit)
                        .hinted(fmt::format("--limit {:.1f} takes it all the same; --text with a text such as it will "
                                            "read measures it better",
                                            std::ceil(made.percent * 10) / 10)));
  return ExitCode::no;
}

}  // namespace

void add_quantize(Subcommand app, Context& context) {
  auto options = std::make_shared<QuantizeCommand>();
  Subcommand command =
      add_command(app, "quantize", "a model's matrices in int8 or int4, as a folder that loads at once", options,
                  context, quantize);
  command.add_option("model", options->model, "the folder of a Hugging Face model that writes text, or a GGUF file")
      .required();
  command
      .add_option("--out", options->quantize.out,
                  "the folder to make, which serve, generate, embed, batch and eval take as a model")
      .required();
  command
      .add_option(
          "--weights", options->weights,
          "int8: a scale for each output of a matrix; int4: a scale and a minimum for each 32 of its numbers, and the "
          "head in int8; a GGUF file's Q4_0 and Q4_1 are kept as they are")
      .check(one_of({"int8", "int4"}))
      .capture_default_str();
  command.add_option(
      "--text", options->text,
      "a file with a text that the model was not trained on, whose beginning measures the error; without: "
      "a short one of prose");
  command
      .add_option("--limit", options->quantize.limit,
                  "most percent by which this may change bits per byte; if it is more, nothing is written")
      .check(not_negative())
      .capture_default_str();
  add_device_options(command, options->backend);
}

}  // namespace systole::cli
