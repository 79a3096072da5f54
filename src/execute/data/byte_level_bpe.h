#pragma once
// Byte-level BPE (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", 2.2) as `tokenizers`
// describes it: a text is cut at added tokens, each stretch into words by patterns, and a word's bytes are merged pair
// by pair. Every byte is a token, so any text can be written; bytes that are not UTF-8 stand alone, each its own token.
//
//   tokenizer.json:  model BPE; pre_tokenizer ByteLevel, Split (isolated), or a Sequence of them that ends in
//   ByteLevel;
//                    decoder ByteLevel; added tokens. What would change a text (a normalizer, a space put before it) or
//                    is of another kind is refused by name.
//   vocab.json and merges.txt: GPT-2's pattern.
//
// Which token ends a document stands in none of them: tokenizer_config.json or special_tokens_map.json beside them
// tell, else the usual names are tried ("<|endoftext|>", "<|end_of_text|>", "</s>", …). Private to this folder.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "execute/data/merges.h"
#include "execute/data/split_pattern.h"
#include "execute/data/tokenizer_model.h"

namespace systole {

// What the files say, before it is made fast.
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
  bool ignore_merges = false;  // a word that is a token is taken whole, whatever the merges would make of it
  std::string bos, eos;        // as the files name them; empty: not said
  std::vector<std::int32_t> before, after;  // as in TokenizerModel: a post-processor says so
  bool puts_bos = false, puts_eos = false;  // so do add_bos_token and add_eos_token, where no post-processor does
};

// Errors: corrupt; unsupported.
Result<BytePairParts> read_byte_pair_parts(std::string_view serialised);

class BytePairModel : public TokenizerModel {
 public:
  explicit BytePairModel(MergeTable table) : merges(std::move(table)) {}
  std::unique_ptr<ModelEncoder> encoder() const override;
  Bytes resident() const override;

  struct Added {  // found in a text before it is cut
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
