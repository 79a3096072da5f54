#pragma once
// Facts of a text for a first workload: its size, how it splits into documents, the share to hold out, and the
// vocabulary that its tokenizer can have. Read from the text, so the following run can train its tokenizer and has
// held-out documents without an edit.

#include <cstdint>
#include <string>
#include <vector>

#include "execute/data/text_source.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

struct TextFacts {
  std::vector<std::string> files;  // as given: paths or patterns
  Bytes bytes;                     // uncompressed text
  bool estimated = false;          // `bytes` is an estimate: compressed files were read in part
  bool records = false;            // JSON Lines: each record is a document, and `document` is unused
  DocumentRule document = DocumentRule::line;
  bool ill_formed = false;       // contains invalid UTF-8
  std::int64_t documents = 0;    // in the bytes that were read
  bool whole = false;            // all of the text was read
  double held_out = 0;           // share of held-out documents; at least one document
  std::int64_t vocabulary = 0;   // tokens of a SentencePiece model that can be trained on the text
  double bytes_per_token = 1.0;  // of that model, on the beginning of the text

  std::int64_t tokens() const;  // estimate for the whole text
};

// The shortest text to train on: a few dozen rows of the smallest model.
constexpr Bytes kLeastText = kKiB * 16;

// Reads the first MiBs of the files and trains a tokenizer on the first MiB: a second or two. Paths are relative to the
// working folder. Errors: not_found: a pattern that matches nothing; invalid: less than kLeastText; a single document;
// input that the readers refuse (binary data, a record without a text), and text on which no tokenizer can be trained.
Result<TextFacts> facts_of_text(const std::vector<std::string>& files);

}  // namespace systole
