#include "execute/data/word_piece.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "execute/data/tokenizer_files.h"
#include "execute/data/utf8.h"
#include "execute/data/word_cache.h"

namespace systole {
namespace {

using Json = nlohmann::json;

constexpr std::int32_t kLargestToken = 10'000'000;
constexpr int kDeepest = 100;  // copying a deeper tree would overflow the stack: it takes a frame per level

Error damaged(std::string_view file, std::string_view why) {
  return error(ErrorKind::corrupt, "the tokenizer's {} is damaged: {}", file, why).hinted("copy its files again");
}

Error refused(std::string_view part, std::string_view why) {
  return error(ErrorKind::unsupported, "the tokenizer's {}: {}", part, why)
      .hinted("of WordPiece tokenizers Systole reads those of bert: BertNormalizer, BertPreTokenizer");
}

// Keys may be looked up by a view.
struct ViewHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Vocabulary = std::unordered_map<std::string, std::int32_t, ViewHash, std::equal_to<>>;

class WordPieceModel : public TokenizerModel {
 public:
  std::unique_ptr<ModelEncoder> encoder() const override;
  Bytes resident() const override { return Bytes(200) * static_cast<std::int64_t>(spellings.size()); }

  Vocabulary begin, inside;  // pieces by their text, without the prefix of those inside of a word
  std::size_t longest = 1;   // bytes of a piece
  std::int32_t unknown = 0;
  std::size_t longest_word = 100;  // characters; longer words are unknown
  BertCleaning cleaning;
};

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

class WordPieceEncoder : public ModelEncoder {
 public:
  explicit WordPieceEncoder(const WordPieceModel& model) : model_(model) {}

  void encode(std::string_view text, std::vector<std::int32_t>& tokens) override {
    std::string whole(text);
    replace_ill_formed_parts(whole);
    const std::string words = bert_words(whole, model_.cleaning);
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t end = words.find(' ', at);
      encode_word(std::string_view(words).substr(at, end - at), tokens);
      at = end + 1;
    }
  }

 private:
  void encode_word(std::string_view word, std::vector<std::int32_t>& tokens) {
    if (known_.find(word, tokens)) return;
    pieces_.clear();
    if (count_characters(word) > model_.longest_word || !split(word)) pieces_ = {model_.unknown};
    tokens.insert(tokens.end(), pieces_.begin(), pieces_.end());
    known_.keep(word, pieces_);
  }

  // False: some part begins no piece.
  bool split(std::string_view word) {
    for (std::size_t at = 0; at < word.size();) {
      const Vocabulary& vocabulary = at == 0 ? model_.begin : model_.inside;
      std::size_t length = std::min(word.size() - at, model_.longest);
      auto found = vocabulary.find(word.substr(at, length));
      while (found == vocabulary.end() && --length > 0) found = vocabulary.find(word.substr(at, length));
      if (length == 0) return false;
      pieces_.push_back(found->second);
      at += length;
    }
    return true;
  }

  const WordPieceModel& model_;
  WordCache known_;
  std::vector<std::int32_t> pieces_;
};

std::unique_ptr<ModelEncoder> WordPieceModel::encoder() const { return std::make_unique<WordPieceEncoder>(*this); }

// What the files say, before the tables.
struct Parts {
  std::vector<std::string> names;  // by token; "" where there is none
  std::string prefix = "##", unk = "[UNK]", cls = "[CLS]", sep = "[SEP]";
  std::set<std::string> specials{"[PAD]", "[MASK]"};
  std::size_t longest_word = 100;
  BertCleaning cleaning;
};

std::string text_of(const Json& json, const char* key, const std::string& otherwise = "") {
  const auto found = json.find(key);
  if (found == json.end()) return otherwise;
  if (found->is_object()) return text_of(*found, "content", otherwise);  // {"content": "[CLS]", …}
  return found->is_string() ? found->get<std::string>() : otherwise;
}

bool flag_of(const Json& json, const char* key, bool otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

// Errors: corrupt. Throws Json::exception where it is no JSON.
Result<Json> parsed(const std::string& text, std::string_view file) {
  bool too_deep = false;
  Json json = Json::parse(text, [&](int depth, Json::parse_event_t, const Json&) {
    too_deep = too_deep || depth > kDeepest;
    return depth <= kDeepest;
  });
  if (too_deep) return damaged(file, fmt::format("lists and maps stand in each other more than {} deep", kDeepest));
  if (!json.is_object()) return damaged(file, "it is no JSON object");
  return json;
}

Json part_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_object() ? Json::object() : *found;
}

Status name_token(Parts& parts, const std::string& name, const Json& number) {
  if (!number.is_number_integer() || number.get<double>() < 0 || number.get<double>() > kLargestToken)
    return damaged("tokenizer.json", fmt::format("the number of token '{}' is {}", name, number.dump()));
  const auto token = number.get<std::size_t>();
  if (token >= parts.names.size()) parts.names.resize(token + 1);
  if (!parts.names[token].empty() && parts.names[token] != name)
    return damaged("tokenizer.json", fmt::format("'{}' and '{}' have one number", parts.names[token], name));
  parts.names[token] = name;
  return {};
}

Status read_whole(const std::string& text, Parts& parts) {
  const Json json = TRY(parsed(text, "tokenizer.json"));
  const Json model = part_of(json, "model"), normalizer = part_of(json, "normalizer");
  const Json vocabulary = part_of(model, "vocab"), all_added = json.value("added_tokens", Json::array());
  const std::string cleans = text_of(normalizer, "type", "none");
  const std::string splits = text_of(part_of(json, "pre_tokenizer"), "type", "none");
  const std::string puts = text_of(part_of(json, "post_processor"), "type", "TemplateProcessing");
  if (cleans != "BertNormalizer") return refused("normalizer", fmt::format("'{}' is not BertNormalizer", cleans));
  if (splits != "BertPreTokenizer")
    return refused("pre_tokenizer", fmt::format("'{}' is not BertPreTokenizer", splits));
  if (puts != "TemplateProcessing" && puts != "BertProcessing")
    return refused("post_processor", fmt::format("of the unknown kind '{}'", puts));
  parts.cleaning.clean = flag_of(normalizer, "clean_text", true);
  parts.cleaning.cjk = flag_of(normalizer, "handle_chinese_chars", true);
  parts.cleaning.lower = flag_of(normalizer, "lowercase", true);
  parts.cleaning.strip_accents = flag_of(normalizer, "strip_accents", parts.cleaning.lower);
  parts.unk = text_of(model, "unk_token", parts.unk);
  parts.prefix = text_of(model, "continuing_subword_prefix", parts.prefix);
  parts.longest_word = model.value("max_input_chars_per_word", std::size_t{100});
  for (const auto& [name, number] : vocabulary.items()) TRY(name_token(parts, name, number));
  for (const Json& added : all_added) {
    const std::string name = text_of(added, "content");
    if (!added.contains("id")) return damaged("tokenizer.json", "an added token has no number");
    TRY(name_token(parts, name, added["id"]));
    if (!flag_of(added, "special", false)) return refused("added token", fmt::format("'{}' is not special", name));
    parts.specials.insert(name);
  }
  return {};
}

void read_lines(std::string_view text, Parts& parts) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    parts.names.emplace_back(line);
  }
}

// tokenizer_config.json: the names of tokens, and beside a vocab.txt how texts are cleaned.
Status read_config(const TokenizerFiles& files, bool says_cleaning, Parts& parts) {
  const auto file = files.find("tokenizer_config.json");
  if (file == files.end()) return {};
  const Json json = TRY(parsed(file->second, "tokenizer_config.json"));
  parts.cls = text_of(json, "cls_token", parts.cls);
  parts.sep = text_of(json, "sep_token", parts.sep);
  if (!says_cleaning) return {};
  parts.unk = text_of(json, "unk_token", parts.unk);
  parts.cleaning.lower = flag_of(json, "do_lower_case", true);
  parts.cleaning.strip_accents = flag_of(json, "strip_accents", parts.cleaning.lower);
  parts.cleaning.cjk = flag_of(json, "tokenize_chinese_chars", true);
  return {};
}

Result<Parts> read_parts(std::string_view serialised) {
  const TokenizerFiles files = TRY(unbundle_tokenizer(serialised));
  Parts parts;
  const auto whole = files.find("tokenizer.json"), lines = files.find("vocab.txt");
  try {
    if (whole != files.end()) {
      TRY(read_whole(whole->second, parts));
    } else if (lines != files.end()) {
      read_lines(lines->second, parts);
    } else {
      return damaged("vocab.txt", "it is absent");
    }
    TRY(read_config(files, whole == files.end(), parts));
  } catch (const Json::exception& bad) { return damaged("files", bad.what()); }
  return parts;
}

Result<std::int32_t> token_named(const Parts& parts, const std::string& name) {
  const auto found = std::ranges::find(parts.names, name);
  if (found == parts.names.end() || name.empty())
    return damaged("vocabulary", fmt::format("it has no token '{}'", name));
  return static_cast<std::int32_t>(found - parts.names.begin());
}

}  // namespace

bool is_word_piece(std::string_view serialised) {
  if (serialised.find("WordPiece") == serialised.npos && serialised.find("vocab.txt") == serialised.npos) return false;
  const Result<TokenizerFiles> files = unbundle_tokenizer(serialised);
  if (!files.ok()) return false;
  const auto whole = files->find("tokenizer.json");
  if (whole == files->end()) return files->contains("vocab.txt");
  try {
    const Result<Json> json = parsed(whole->second, "tokenizer.json");
    return json.ok() && text_of(part_of(*json, "model"), "type") == "WordPiece";
  } catch (const Json::exception&) { return false; }
}

Result<std::shared_ptr<TokenizerModel>> load_word_piece(std::string_view serialised) {
  Parts parts = TRY(read_parts(serialised));
  auto model = std::make_shared<WordPieceModel>();
  model->family = TokenizerFamily::word_piece;
  model->unknown = TRY(token_named(parts, parts.unk));
  model->bos = TRY(token_named(parts, parts.cls));
  model->eos = TRY(token_named(parts, parts.sep));
  model->before = {model->bos};
  model->after = {model->eos};
  model->keeps_text = false;
  model->begins_with_space = true;
  model->byte_tokens.fill(model->unknown);
  model->longest_word = parts.longest_word;
  model->cleaning = parts.cleaning;
  parts.specials.insert({parts.unk, parts.cls, parts.sep});
  for (std::size_t i = 0; i < parts.names.size(); ++i) {
    const auto token = static_cast<std::int32_t>(i);
    const std::string& name = parts.names[i];
    if (name.empty() || parts.specials.contains(name)) {
      model->spellings.emplace_back();
      if (!name.empty()) model->specials.push_back({name, token});
      continue;
    }
    const bool is_inside = !parts.prefix.empty() && name.starts_with(parts.prefix) && name.size() > parts.prefix.size();
    const std::string piece = is_inside ? name.substr(parts.prefix.size()) : name;
    (is_inside ? model->inside : model->begin)[piece] = token;
    model->longest = std::max(model->longest, piece.size());
    model->spellings.push_back(is_inside ? piece : " " + piece);
  }
  return std::shared_ptr<TokenizerModel>(std::move(model));
}

}  // namespace systole
