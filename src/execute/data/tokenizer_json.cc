// read_byte_pair_parts: reads tokenizer.json, or vocab.json and merges.txt, and the files beside them.
//
// A tokenizer.json has hundreds of thousands of tokens and merges, so they are extracted during parsing, and only the
// small rest becomes a tree.

#include <nlohmann/json.hpp>

#include "execute/data/byte_level_bpe.h"
#include "execute/data/tokenizer_files.h"

namespace systole {
namespace {

using Json = nlohmann::json;

// `tokenizers`' ByteLevel with use_regex (pre_tokenizers/byte_level.rs), which is GPT-2's.
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Error damaged(std::string_view file, std::string_view why) {
  return error(ErrorKind::corrupt, "the tokenizer's {} is damaged: {}", file, why).hinted("copy its files again");
}

Error refused(std::string_view part, std::string_view why) {
  return error(ErrorKind::unsupported, "the tokenizer's {}: {}", part, why)
      .hinted("Systole reads SentencePiece models and byte-level BPE (GPT-2, Llama 3) without normalizer");
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_of(const Json& json, const char* key, bool otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

bool absent(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null();
}

constexpr int kDeepest = 100;  // copying a deeper tree would overflow the stack: it takes a frame per level

// Extracts model.vocab and model.merges from the parser's events. `outer`: keys that enclose the parsed text.
class Collector {
 public:
  Collector(BytePairParts& parts, std::vector<std::string> outer) : parts_(parts), path_(std::move(outer)) {
    outer_ = static_cast<int>(path_.size());
    path_.resize(2);
  }

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest)
      return complain(fmt::format("lists and maps stand in each other more than {} deep", kDeepest));
    depth += outer_;
    if (event == Json::parse_event_t::key) {
      if (depth <= 2) path_[static_cast<std::size_t>(depth) - 1] = value.get<std::string>();
      if (depth != 3 || !in("vocab")) return true;
      key_ = value.get<std::string>();
      return false;
    }
    if (event == Json::parse_event_t::value && in("vocab") && depth == 3) return take_token(value);
    if (event == Json::parse_event_t::value && in("merges") && depth == 3) return take_merge(value);
    if (event == Json::parse_event_t::value && in("merges") && depth == 4) return take_side(value);
    if (event == Json::parse_event_t::array_end && in("merges") && depth == 3) return take_pair();
    return true;
  }

  std::string wrong;  // the first error

 private:
  bool in(std::string_view part) const { return path_[0] == "model" && path_[1] == part; }
  bool complain(std::string why) {
    if (wrong.empty()) wrong = std::move(why);
    return false;
  }

  bool take_token(const Json& value) {
    if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > 2e9)
      return complain(fmt::format("the number of token '{}' is {}", key_, value.dump()));
    if (!parts_.vocabulary.emplace(key_, value.get<std::int32_t>()).second)
      return complain(fmt::format("token '{}' stands there twice", key_));
    return false;
  }
  bool take_merge(const Json& value) {
    if (!value.is_string()) return complain("a merge is neither a text nor a pair");
    const auto& text = value.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      return complain(fmt::format("the merge '{}' is not two tokens", text));
    parts_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    return false;
  }
  bool take_side(const Json& value) {
    if (!value.is_string() || sides_.size() == 2) return complain("a merge is not two tokens");
    sides_.push_back(value.get<std::string>());
    return false;
  }
  bool take_pair() {
    if (sides_.size() != 2) return complain("a merge is not two tokens");
    parts_.merges.emplace_back(std::move(sides_[0]), std::move(sides_[1]));
    sides_.clear();
    return false;
  }

  BytePairParts& parts_;
  std::vector<std::string> path_, sides_;
  std::string key_;
  int outer_ = 0;
};

// Parses a file: fills `parts` and returns the rest as a tree.
Result<Json> collect(const std::string& text, std::string_view file, std::vector<std::string> outer,
                     BytePairParts& parts) {
  Collector collector(parts, std::move(outer));
  try {
    Json rest = Json::parse(
        text, [&](int depth, Json::parse_event_t event, Json& value) { return collector(depth, event, value); });
    if (!collector.wrong.empty()) return damaged(file, collector.wrong);
    if (!rest.is_object()) return damaged(file, "it is no JSON object");
    return rest;
  } catch (const Json::exception& bad) { return damaged(file, bad.what()); }
}

Status read_model(const Json& model, BytePairParts& parts) {
  const std::string type = text_of(model, "type");
  if (type != "BPE" && !(type.empty() && !parts.merges.empty()))
    return refused("model", fmt::format("'{}' is not BPE", type.empty() ? "of no type" : type));
  if (!absent(model, "dropout") && model["dropout"] != 0)
    return refused("model", "it drops merges at random (dropout)");
  if (flag_of(model, "byte_fallback", false))
    return refused("model", "its tokens are characters with bytes as a fallback (byte_fallback), not bytes");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!text_of(model, key).empty()) return refused("model", fmt::format("it marks parts of words ({})", key));
  }
  parts.ignore_merges = flag_of(model, "ignore_merges", false);
  return {};
}

Status read_split(const Json& split, BytePairParts& parts) {
  if (const std::string behavior = text_of(split, "behavior");
      behavior != "Isolated" || flag_of(split, "invert", false))
    return refused("pre_tokenizer", fmt::format("Split keeps every word only as Isolated, here it is {}{}", behavior,
                                                flag_of(split, "invert", false) ? ", inverted" : ""));
  const Json& pattern = split.contains("pattern") ? split["pattern"] : Json();
  const bool literal = pattern.is_object() && pattern.contains("String");
  const std::string text = pattern.is_object() ? text_of(pattern, literal ? "String" : "Regex") : std::string();
  if (text.empty()) return damaged("tokenizer.json", "a Split has no pattern");
  parts.patterns.push_back(TRY(literal ? SplitPattern::literal(text) : SplitPattern::compile(text)));
  return {};
}

Status read_pre_tokenizer(const Json& step, BytePairParts& parts, bool& byte_level) {
  const std::string type = step.is_object() ? text_of(step, "type") : std::string();
  if (byte_level) return refused("pre_tokenizer", fmt::format("{} comes after ByteLevel", type));
  if (type == "Split") return read_split(step, parts);
  if (type != "ByteLevel") return refused("pre_tokenizer", fmt::format("of the unknown kind '{}'", type));
  if (flag_of(step, "add_prefix_space", true))
    return refused("pre_tokenizer", "it puts a space before the text (add_prefix_space)");
  if (flag_of(step, "use_regex", true)) parts.patterns.push_back(TRY(SplitPattern::compile(kGpt2)));
  byte_level = true;
  return {};
}

Status read_pre_tokenizers(const Json& json, BytePairParts& parts) {
  const Json pre = json.contains("pre_tokenizer") ? json["pre_tokenizer"] : Json();
  bool byte_level = false;
  if (pre.is_object() && text_of(pre, "type") == "Sequence" && pre.contains("pretokenizers")) {
    for (const Json& step : pre["pretokenizers"]) TRY(read_pre_tokenizer(step, parts, byte_level));
  } else if (!pre.is_null()) {
    TRY(read_pre_tokenizer(pre, parts, byte_level));
  }
  if (!byte_level) return refused("pre_tokenizer", "it is not byte-level");
  return {};
}

Status check_rest(const Json& json) {
  const Json normalizer = json.contains("normalizer") ? json["normalizer"] : Json();
  const bool nothing = normalizer.is_object() && text_of(normalizer, "type") == "Sequence" &&
                       normalizer.contains("normalizers") && normalizer["normalizers"].empty();
  if (!normalizer.is_null() && !nothing) {
    return refused("normalizer", fmt::format("'{}' changes the text, which could not be given back as it was",
                                             normalizer.is_object() ? text_of(normalizer, "type") : normalizer.dump()));
  }
  const Json decoder = json.contains("decoder") ? json["decoder"] : Json();
  if (!decoder.is_object() || text_of(decoder, "type") != "ByteLevel")
    return refused("decoder",
                   fmt::format("'{}' is not ByteLevel", decoder.is_object() ? text_of(decoder, "type") : "none"));
  return {};
}

// A token's id; -1, which is no id, if it is too large.
std::int32_t token_of(const Json& number) {
  const auto id = number.get<std::int64_t>();
  return id >= 0 && id < std::int64_t{1} << 30 ? static_cast<std::int32_t>(id) : -1;
}

Status read_added(const Json& json, BytePairParts& parts) {
  if (absent(json, "added_tokens")) return {};
  for (const Json& token : json["added_tokens"]) {
    if (!token.is_object() || !token.contains("id") || !token["id"].is_number_integer())
      return damaged("tokenizer.json", "an added token has no number");
    BytePairParts::Added added{text_of(token, "content"), token_of(token["id"]), flag_of(token, "special", false)};
    for (const char* key : {"single_word", "lstrip", "rstrip"}) {
      if (!added.special && flag_of(token, key, false))
        return refused("added token", fmt::format("'{}' takes in what is around it ({})", added.text, key));
    }
    parts.added.push_back(std::move(added));
  }
  return {};
}

// "<s>" or {"content": "<s>", ...}.
void read_name(const Json& json, const char* key, std::string& name) {
  const auto found = json.find(key);
  if (!name.empty() || found == json.end()) return;
  if (found->is_string()) name = found->get<std::string>();
  if (found->is_object()) name = text_of(*found, "content");
}

Status read_names(const TokenizerFiles& files, BytePairParts& parts) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const auto file = files.find(name);
    if (file == files.end()) continue;
    const Json json = Json::parse(file->second, nullptr, false);
    if (!json.is_object()) return damaged(name, "it is no JSON object");
    read_name(json, "bos_token", parts.bos);
    read_name(json, "eos_token", parts.eos);
    parts.puts_bos = flag_of(json, "add_bos_token", parts.puts_bos);
    parts.puts_eos = flag_of(json, "add_eos_token", parts.puts_eos);
  }
  return {};
}

// ["<s>", 0], as in RobertaProcessing and BertProcessing.
Status add_named(const Json& step, const char* key, std::vector<std::int32_t>& marks) {
  const auto found = step.find(key);
  if (found == step.end() || !found->is_array() || found->size() != 2 || !(*found)[1].is_number_integer())
    return damaged("tokenizer.json", fmt::format("its {} has no {}", text_of(step, "type"), key));
  marks.push_back(token_of((*found)[1]));
  return {};
}

// The ids of a special token in a template.
Status add_special(const Json& step, const std::string& name, std::vector<std::int32_t>& marks) {
  const Json ids = step.value("special_tokens", Json::object()).value(name, Json::object()).value("ids", Json::array());
  if (ids.empty()) return damaged("tokenizer.json", fmt::format("its template has no token '{}'", name));
  for (const Json& id : ids) {
    if (!id.is_number_integer()) return damaged("tokenizer.json", fmt::format("the ids of '{}' are no numbers", name));
    marks.push_back(token_of(id));
  }
  return {};
}

Status read_template(const Json& step, std::vector<std::int32_t>& before, std::vector<std::int32_t>& after) {
  bool text_seen = false;
  for (const Json& piece : step.value("single", Json::array())) {
    if (piece.is_object() && piece.contains("SpecialToken")) {
      TRY(add_special(step, text_of(piece["SpecialToken"], "id"), text_seen ? after : before));
    } else if (piece.is_object() && piece.contains("Sequence")) {
      text_seen = true;
    } else {
      return damaged("tokenizer.json", "a piece of its template is neither a special token nor the text");
    }
  }
  return {};
}

// The marks that the file puts around a single text: `tokenizers`' processors/{template,roberta,bert,sequence}.rs.
// Each step of a sequence puts its marks around the result of the previous one. ByteLevel puts none.
Status read_post_processor(const Json& step, BytePairParts& parts) {
  if (step.is_null()) return {};
  const std::string type = text_of(step, "type");
  std::vector<std::int32_t> before, after;
  if (type == "Sequence") {
    for (const Json& inner : step.value("processors", Json::array())) TRY(read_post_processor(inner, parts));
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    TRY(add_named(step, "cls", before));
    TRY(add_named(step, "sep", after));
  } else if (type == "TemplateProcessing") {
    TRY(read_template(step, before, after));
  } else if (type != "ByteLevel") {
    return refused("post_processor", fmt::format("of the unknown kind '{}'", type));
  }
  parts.before.insert(parts.before.begin(), before.begin(), before.end());
  parts.after.insert(parts.after.end(), after.begin(), after.end());
  return {};
}

Status read_whole(const std::string& text, BytePairParts& parts) {
  const Json json = TRY(collect(text, "tokenizer.json", {}, parts));
  if (!json.contains("model") || !json["model"].is_object()) return damaged("tokenizer.json", "it has no model");
  TRY(read_model(json["model"], parts));
  TRY(check_rest(json));
  TRY(read_pre_tokenizers(json, parts));
  TRY(read_added(json, parts));
  if (json.contains("post_processor")) TRY(read_post_processor(json["post_processor"], parts));
  return {};
}

// merges.txt: an optional line "#version: ...", then one merge per line.
Status read_merges(std::string_view text, BytePairParts& parts) {
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view merge = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (merge.ends_with('\r')) merge.remove_suffix(1);
    if (merge.empty() || merge.starts_with("#version")) continue;
    const std::size_t space = merge.find(' ');
    if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos)
      return damaged("merges.txt", fmt::format("line {} is not two tokens", line));
    parts.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return {};
}

Status read_pair(const TokenizerFiles& files, BytePairParts& parts) {
  const auto vocabulary = files.find("vocab.json"), merges = files.find("merges.txt");
  if (vocabulary == files.end() || merges == files.end())
    return error(ErrorKind::corrupt,
                 "this is no tokenizer: it has neither tokenizer.json nor vocab.json and merges.txt")
        .hinted("name a tokenizer.json");
  TRY(collect(vocabulary->second, "vocab.json", {"model", "vocab"}, parts));
  TRY(read_merges(merges->second, parts));
  parts.patterns.push_back(TRY(SplitPattern::compile(kGpt2)));
  return {};
}

}  // namespace

Result<BytePairParts> read_byte_pair_parts(std::string_view serialised) {
  const TokenizerFiles files = TRY(unbundle_tokenizer(serialised));
  BytePairParts parts;
  TRY(read_names(files, parts));
  const auto whole = files.find("tokenizer.json");
  try {
    if (whole != files.end()) {
      TRY(read_whole(whole->second, parts));
    } else {
      TRY(read_pair(files, parts));
    }
  } catch (const Json::exception& bad) { return damaged("tokenizer.json", bad.what()); }
  return parts;
}

}  // namespace systole
