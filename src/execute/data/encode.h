#pragma once
// Documents to tokens on several threads, in the documents' order. Private to the build.

#include <functional>
#include <span>

#include "execute/data/text_source.h"
#include "execute/data/tokenizer.h"

namespace systole {

struct EncodeStep {
  // Fills the document, and whether it is held out; false at the end.
  std::function<Result<bool>(Document&, bool& held_out)> next;
  // Takes a document's tokens, eos last, and its bytes of text, in the order that `next` gave them.
  std::function<Status(std::span<const std::int32_t> tokens, std::int64_t bytes, bool held_out)> sink;
};

// `next` and `sink` are called on this thread only. Memory: about 8 MiB a thread. Errors: theirs.
Status encode_documents(const Tokenizer& tokenizer, int threads, const EncodeStep& step);

}  // namespace systole
