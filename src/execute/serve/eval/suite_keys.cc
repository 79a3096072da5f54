#include "execute/serve/eval/suite_keys.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "execute/serve/eval/text_counts.h"
#include "ground/base/counted.h"
#include "ground/base/nearest.h"
#include "ground/base/quantity.h"
#include "ground/base/text_file.h"
#include "ground/store/sha256.h"

namespace systole {
namespace {

// What "env:NAME" or "file:PATH" refers to. A text that is neither is not shown: it may be the secret.
Result<std::string> secret_of(const Node& node, const SuiteFiles& files) {
  const std::string reference = TRY(node.as_string());
  std::string text;
  if (reference.starts_with("env:")) {
    const std::string name = reference.substr(4);
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) {
      return error(ErrorKind::not_found, "there is no environment variable '{}'", name)
          .at(node.where())
          .hinted("export it, or have the key in a file: file:PATH");
    }
    text = value;
  } else if (reference.starts_with("file:")) {
    text = TRY(at_place(node.where(), read_secret_file(files.beside(reference.substr(5)), kKiB * 64)));
  } else {
    return error(ErrorKind::invalid, "a suite has no key itself, but where it is")
        .at(node.where())
        .hinted("key: env:NAME, or key: file:PATH");
  }
  text = std::string(without_space_around(text));
  if (!text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; })) return text;
  return error(ErrorKind::invalid, "the key {} is empty, or not of printable ASCII without spaces", reference)
      .at(node.where());
}

Result<FieldTemplate> template_with_response(const Node& map, std::string_view key) {
  const Node* const text = TRY(map.get(key));
  FieldTemplate made = TRY(template_of(*text));
  const std::vector<std::string> fields = made.fields();
  if (std::ranges::find(fields, "response") != fields.end()) return made;
  return error(ErrorKind::invalid, "the {} does not have the answer", key)
      .at(text->where())
      .hinted("{response} stands for it");
}

Result<Seconds> timeout_of(const Node& node) {
  const Seconds time = TRY(as_seconds(node));
  if (time < Seconds(0.001) || time > Seconds(3600.0)) return node.wrong("1ms to 1h");
  return time;
}

}  // namespace

std::string SuiteFiles::beside(const std::string& path) const {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

Result<std::string> SuiteFiles::text_of(const std::string& path) {
  std::string text = TRY(read_text_file(path));
  if (std::ranges::find(read, path, &EvalFile::path) == read.end()) read.push_back({path, sha256_of(text)});
  return text;
}

Status only_known(const Node& map, const std::vector<std::string>& known) {
  if (!map.is_map()) return map.wrong("a map");
  for (const Node::Entry& entry : map.entries()) {
    if (std::ranges::find(known, entry.key) != known.end()) continue;
    return error(ErrorKind::invalid, "unknown key '{}'", entry.key)
        .at(entry.where())
        .hinted(nearest_hint(entry.key, known));
  }
  return {};
}

Result<std::string> text_or(const Node& map, std::string_view key, std::string otherwise) {
  const Node* const found = map.find(key);
  if (found == nullptr) return otherwise;
  return found->as_string();
}

Result<FieldTemplate> template_of(const Node& node) {
  const std::string text = TRY(node.as_string());
  return at_place(node.where(), FieldTemplate::parse(text));
}

Result<JudgeSpec> judge_of(const Node& node, const SuiteFiles& files) {
  TRY(only_known(node, {"url", "model", "key", "prompt", "pattern", "scores", "tokens", "timeout", "retries"}));
  JudgeSpec judge;
  const Node *const url = TRY(node.get("url")), *const model = TRY(node.get("model")),
                    *const pattern = TRY(node.get("pattern")), *const scores = TRY(node.get("scores"));
  judge.url = TRY(url->as_string());
  if (!judge.url.starts_with("http://") && !judge.url.starts_with("https://"))
    return url->wrong("the address of an API, such as https://HOST/v1");
  judge.url.erase(judge.url.find_last_not_of('/') + 1);
  judge.model = TRY(model->as_string());
  judge.prompt = TRY(template_with_response(node, "prompt"));
  const std::string regex = TRY(pattern->as_string());
  judge.pattern = TRY(at_place(pattern->where(), TextPattern::compile(regex)));
  if (scores->items().size() != 2) return scores->wrong("the lowest and the highest score, such as [1, 10]");
  judge.lowest = TRY(scores->items()[0].as_double());
  judge.highest = TRY(scores->items()[1].as_double());
  if (judge.lowest >= judge.highest)
    return error(ErrorKind::invalid, "the lowest score is not below the highest").at(scores->where());
  if (const Node* const key = node.find("key")) judge.key = TRY(secret_of(*key, files));
  if (const Node* const tokens = node.find("tokens")) judge.tokens = TRY(tokens->as_int(1, 1 << 20));
  if (const Node* const retries = node.find("retries")) judge.retries = TRY(retries->as_int(0, 10));
  if (const Node* const timeout = node.find("timeout")) judge.timeout = TRY(timeout_of(*timeout));
  return judge;
}

Result<ProgramSpec> program_of(const Node& node) {
  ProgramSpec program;
  program.text = TRY(template_with_response(node, "program"));
  const Node* const command = TRY(node.get("command"));
  for (const Node& word : command->items()) program.command.push_back(TRY(word.as_string()));
  if (program.command.empty() || program.command[0].empty())
    return command->wrong("a list of words, such as [python3, program.py]");
  if (const Node* const file = node.find("file")) {
    program.file = TRY(file->as_string());
    if (program.file.empty() || program.file.starts_with('.') || program.file.find('/') != std::string::npos)
      return file->wrong("the name of a file, without a folder");
  }
  if (const Node* const samples = node.find("samples")) program.samples = TRY(samples->as_int(1, 1000));
  if (const Node* const k = node.find("k")) program.k = TRY(k->as_int(1, program.samples));
  if (const Node* const temperature = node.find("temperature")) {
    program.temperature = TRY(temperature->as_double());
    if (program.temperature < 0 || program.temperature > 2) return temperature->wrong("0 to 2");
  }
  if (const Node* const seed = node.find("seed")) program.seed = static_cast<std::uint64_t>(TRY(seed->as_int(0)));
  if (program.samples > 1 && program.temperature == 0) {
    return error(ErrorKind::invalid, "at temperature 0 all {} are the same", counted(program.samples, "sample"))
        .at(node.where())
        .hinted("temperature: 0.8");
  }
  if (const Node* const timeout = node.find("timeout")) program.timeout = TRY(timeout_of(*timeout));
  if (const Node* const memory = node.find("memory")) {
    program.memory = TRY(as_bytes(*memory));
    if (program.memory < kMiB) return memory->wrong("1MiB or more");
  }
  return program;
}

}  // namespace systole
