#pragma once
// Documents to tokens on several threads, in the documents' order. Private to the build.

#include <functional>
#include <optional>
#include <span>

#include "execute/data/text_source.h"
#include "execute/data/tokenizer.h"

namespace systole {

// A pair becomes the tokens of its input, bos, those of its target, eos: bos stands nowhere else. An input is cut to
// `input` - 1 tokens and a target to `target` - 1, so that each fits a row of so many with eos behind it.
struct PairLengths {
  std::size_t input = 0, target = 0;
};

struct EncodeStep {
  std::optional<PairLengths> pairs = {};  // without: documents
  std::function<void()> cut = {};         // called for each pair that was cut
  // Fills the document, and whether it is held out; false at the end.
  std::function<Result<bool>(Document&, bool& held_out)> next;
  // Takes a document's tokens, eos last, and its bytes of text, in the order that `next` gave them.
  std::function<Status(std::span<const std::int32_t> tokens, std::int64_t bytes, bool held_out)> sink;
};

// `next` and `sink` are called on this thread only. Memory: about 8 MiB a thread. Errors: theirs.
Status encode_documents(const Tokenizer& tokenizer, int threads, const EncodeStep& step);

}  // namespace systole
