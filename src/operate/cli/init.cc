// `systole init TEXT`: a first workload, which trains a language model on that text; with --pattern for a kind of
// place. The model's size follows from the text's length and from the predicted training in ten minutes.

#include <algorithm>
#include <filesystem>

#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/store/store.h"
#include "operate/cli/begin.h"
#include "operate/init/pattern.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "operate/run/catalog_files.h"
#include "operate/run/first_model.h"

namespace systole::cli {
namespace {

namespace fs = std::filesystem;

struct InitOptions {
  std::vector<std::string> places, data;
  std::string pattern, name;
  bool simple = false;
};

struct Asked {
  std::vector<std::string> texts;
  std::string folder = ".";
};

// Whether a nonexistent word is meant as a text: by its extension, or as a file pattern.
bool looks_like_text(const std::string& word) {
  constexpr std::string_view kEndings[] = {".txt", ".text", ".md", ".jsonl", ".ndjson", ".gz", ".dz", ".zst"};
  return word.find_first_of("*?[") != word.npos ||
         std::ranges::any_of(kEndings, [&](std::string_view ending) { return word.ends_with(ending); });
}

// Positional arguments are texts if they are files, or look like one; the remaining one is the folder.
Result<Asked> asked_by(const InitOptions& options) {
  Asked asked{.texts = options.data};
  std::vector<std::string> folders;
  for (const std::string& word : options.places) {
    const bool text = options.data.empty() && (is_file(word) || (looks_like_text(word) && !is_folder(word)));
    (text ? asked.texts : folders).push_back(word);
  }
  if (folders.size() > 1)
    return error(ErrorKind::invalid, "there is no text '{}'", folders.front())
        .hinted(fmt::format("texts that exist, and one FOLDER at most: '{}' is the second name that is no text's",
                            folders[1]));
  if (!folders.empty()) asked.folder = folders.front();
  return asked;
}

Result<Pattern> pattern_of(const InitOptions& options, const Asked& asked) {
  if (options.simple) return Pattern::gce;
  const Pattern pattern = options.pattern.empty() ? Pattern::local : TRY(pattern_named(options.pattern));
  if (pattern == Pattern::local && asked.texts.empty())
    return error(ErrorKind::invalid, "there is no text to train a language model on")
        .hinted("systole init my.txt; or systole init --pattern linear, which trains without a text");
  if (pattern == Pattern::linear && !asked.texts.empty())
    return error(ErrorKind::invalid, "the pattern linear trains on numbers, and '{}' is a text", asked.texts.front())
        .hinted(fmt::format("systole init {}; or systole init --pattern linear", shell_word(asked.texts.front())));
  return pattern;
}

// "train" from "texts/train.txt.zst"; "first" if that cannot name a run.
std::string name_after(const std::vector<std::string>& texts) {
  if (texts.empty()) return "first";
  std::string stem = fs::path(texts.front()).filename().string();
  stem.resize(std::min(stem.find('.'), stem.size()));
  const Result<std::string> name = dns_label(stem, kMostRunName, "a run");
  return name.ok() ? *name : "first";
}

void tell_model(const FirstModel& model, Context& context) {
  const TextFacts& text = model.text;
  context.out.message(fmt::format("text: {}{}, {}{}, about {}", text.estimated ? "about " : "", to_string(text.bytes),
                                  text.whole ? "" : "more than ", counted(text.documents, "document"),
                                  counted(text.tokens(), "token")));
  const ModelSize& size = model.size;
  context.out.message(fmt::format("model: gpt of {} of width {}, {}{}{}", counted(size.layers, "layer"), size.width,
                                  counted(model.steps, "step"), model.predicted.empty() ? "" : ", ", model.predicted));
}

ExitCode init(const InitOptions& options, Context& context) {
  const Asked asked = asked_by(options).value();
  FirstWorkload first{.pattern = pattern_of(options, asked).value()};
  first.name = options.name.empty() ? name_after(asked.texts) : options.name;
  const fs::path folder = absolute_path(asked.folder).value();
  const std::string file = dns_label(first.name, kMostRunName, "a file").value() + ".yaml";
  const std::string path = (fs::path(asked.folder) / file).lexically_normal().string();
  if (path_exists(folder / file))
    fail(error(ErrorKind::exists, "{} is there already", path).hinted("--name ANOTHER, or another FOLDER"));
  std::optional<GpuMachine> machine;
  if (first.pattern == Pattern::gce) {
    CatalogView view = open_catalog_view(context.clock).value();
    machine = cheapest_gpu_machine(view.tables, view.catalog).value();
    first.machine = &*machine;
  }
  std::optional<FirstModel> model;
  if (!asked.texts.empty()) {
    context.out.progress("reading the text");
    model = chosen_first_model(facts_of_text(asked.texts).value(), first, context.clock);
    first.model = &*model;
    context.out.end_progress();
  }
  const std::string text = first_workload(first).value();
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) fail(error(ErrorKind::io, "{}: {}", asked.folder, failed.message()).hinted("another FOLDER"));
  const std::unique_ptr<Store> store = open_posix_store(folder.string()).value();
  write_whole(*store, file, text).value();
  const std::string word = shell_word(path), target = target_of(first.pattern);
  context.out.data("written: " + path);
  if (model) tell_model(*model, context);
  context.out.message("next: systole check " + word);
  const std::string then = target.empty() ? "systole run " + word : "systole render " + word + " --on " + target;
  context.out.message("then: " + then);
  context.out.json(Node::map({{"file", path}, {"pattern", name_of(first.pattern)}, {"then", then}}));
  return ExitCode::done;
}

}  // namespace

void add_init(Subcommand app, Context& context) {
  auto options = std::make_shared<InitOptions>();
  Subcommand command =
      add_command(app, "init", "write a first workload: a language model on a text of yours", options, context, init);
  command.add_option("text", options->places,
                     "files of text to train on; a word that is no file is the folder that the workload goes to");
  command.add_option("--data", options->data, "a file of text, or a pattern in quotes; may be repeated")
      .expected(1)
      .take_all();
  std::vector<std::string> names;
  for (const Pattern pattern : patterns()) names.emplace_back(name_of(pattern));
  Option pattern = command.add_option("--pattern", options->pattern,
                                      fmt::format("for which place: {}; without: local", fmt::join(names, ", ")));
  command.add_flag("--simple", options->simple, "for one GPU machine of Compute Engine, as --pattern gce")
      .excludes(pattern);
  command.add_option("--name", options->name, "what it is called, and its file; without: as the text, or first");
}

}  // namespace systole::cli
