#pragma once
// Loads SentencePiece on first use: when a text is encoded, or a tokenizer is trained. The build uses only its headers;
// sentencepiece_library.cc has stubs for its functions.

#include "ground/base/result.h"

namespace systole {

// Loads it once; thread-safe. REQUIRED before any call of SentencePiece. Errors: unsupported if it is not installed or
// does not match the headers that Systole was built with.
Status load_sentencepiece_library();
Status load_sentencepiece_trainer();  // loads the library too

}  // namespace systole
