#pragma once
// Encodes documents on several threads, keeping their order. Private to the build.

#include <functional>
#include <optional>
#include <span>

#include "execute/data/text_source.h"
#include "execute/data/tokenizer.h"

namespace systole {

// The tokens of a pair: input, bos, target, eos; bos appears nowhere else. An input is cut to `input` - 1 tokens and a
// target to `target` - 1, so that each fits a row of that length with eos at its end.
struct PairLengths {
  std::size_t input = 0, target = 0;
};

struct EncodeStep {
  std::optional<PairLengths> pairs = {};  // absent: documents
  std::function<void()> cut = {};         // called for each pair that was cut
  // Reads the next document, and whether it is held out; false at the end.
  std::function<Result<bool>(Document&, bool& held_out)> next;
  // Takes a document's tokens, eos last, and its bytes of text, in the order of `next`.
  std::function<Status(std::span<const std::int32_t> tokens, std::int64_t bytes, bool held_out)> sink;
};

// `next` and `sink` are called only on this thread. Memory: about 8 MiB per thread. Errors: theirs.
Status encode_documents(const Tokenizer& tokenizer, int threads, const EncodeStep& step);

}  // namespace systole
