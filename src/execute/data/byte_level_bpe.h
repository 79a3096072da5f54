#pragma once
// Byte-level BPE (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", 2.2), in the formats of
// `tokenizers`: a text is split at added tokens, each stretch is split into words by patterns, and a word's bytes are
// merged pair by pair. Every byte is a token, so any text can be encoded; each ill-formed UTF-8 byte is its own token.
// (EveryByte::may_lack: a byte without a token is left out, as `tokenizers` leaves it out.)
//
//   tokenizer.json              model BPE; pre_tokenizer ByteLevel, Split (isolated), or a Sequence of them that ends
//                               in ByteLevel; decoder ByteLevel; added tokens. Other kinds, and whatever would change
//                               the text (a normalizer, a prefix space), are refused by name.
//   vocab.json and merges.txt   with GPT-2's pattern.
//
// None of them names the token that ends a document: tokenizer_config.json or special_tokens_map.json beside them does,
// else the usual names are tried ("<|endoftext|>", "<|end_of_text|>", "</s>", …). Private to this folder.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "execute/data/merges.h"
#include "execute/data/split_pattern.h"
#include "execute/data/tokenizer_model.h"

namespace systole {

// The contents of the files, before lookup tables are built.
struct BytePairParts {
  std::unordered_map<std::string, std::int32_t> vocabulary;  // in the byte alphabet, as written
  std::vector<std::pair<std::string, std::string>> merges;
  struct Added {
    std::string text;
    std::int32_t token = 0;
    bool special = false;
  };
  std::vector<Added> added;
  std::vector<SplitPattern> patterns;
  bool ignore_merges = false;               // a word that is a token is not merged from bytes
  std::string bos, eos;                     // from the files; empty: not named
  std::vector<std::int32_t> before, after;  // from a post-processor; as in TokenizerModel
  bool puts_bos = false, puts_eos = false;  // from add_bos_token and add_eos_token, used if there is no post-processor
};

// Errors: corrupt; unsupported.
Result<BytePairParts> read_byte_pair_parts(std::string_view serialised);

class BytePairModel : public TokenizerModel {
 public:
  explicit BytePairModel(MergeTable table) : merges(std::move(table)) {}
  std::unique_ptr<ModelEncoder> encoder() const override;
  Bytes resident() const override;

  struct Added {  // an added token, found in a text before it is split
    std::string text;
    std::int32_t token = 0;
  };

  MergeTable merges;
  std::vector<SplitPattern> patterns;
  std::vector<Added> added;  // longest first
  bool ignore_merges = false;
  std::unordered_map<std::string_view, std::int32_t> whole;  // with ignore_merges: bytes → token; borrows `spellings`
};

}  // namespace systole
