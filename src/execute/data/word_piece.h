#pragma once
// WordPiece, the tokenizer of bert (Devlin et al., arXiv:1810.04805), as `tokenizers` has it (BertNormalizer,
// BertPreTokenizer, WordPiece): the text is cleaned, lower-cased and stripped of accents, CJK characters and punctuation
// stand alone, and each word becomes the longest pieces of the vocabulary from left to right, "##" before those within
// it. A word that cannot be made of pieces is [UNK] as a whole. So a text is not kept: such a tokenizer is for models
// that read, and for no dataset. Where Unicode gave a character another category since, or a newer one has a category,
// ours is that of utf8proc's Unicode 15.
//
//   tokenizer.json   model WordPiece with its normalizer and pre_tokenizer; others are refused by name
//   vocab.txt        a token a line, with tokenizer_config.json: do_lower_case, strip_accents, tokenize_chinese_chars
//
// Every text has [CLS] before and [SEP] after it. Private to this folder.

#include <memory>
#include <string>
#include <string_view>

#include "execute/data/tokenizer_model.h"

namespace systole {

struct BertCleaning {
  bool clean = true;          // control characters are left out, any white space is a space
  bool cjk = true;            // CJK characters stand alone
  bool lower = true;          // lower case
  bool strip_accents = true;  // marks that are not spacing (Mn) are left out, after canonical decomposition
};
// The words of a text after cleaning, one space after each. REQUIRES: UTF-8.
std::string bert_words(std::string_view text, const BertCleaning& cleaning);

// Whether these bytes of Tokenizer::load_foreign are a WordPiece tokenizer, good or damaged.
bool is_word_piece(std::string_view serialised);

// Errors: corrupt; unsupported, naming the part.
Result<std::shared_ptr<TokenizerModel>> load_word_piece(std::string_view serialised);

}  // namespace systole
