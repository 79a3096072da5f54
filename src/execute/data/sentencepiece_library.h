#pragma once
// SentencePiece, found when the first text is to become its tokens, or the first tokenizer of it is trained. The build
// takes its headers alone, and sentencepiece_library.cc stands in for its functions.

#include "ground/base/result.h"

namespace systole {

// Load it, once; any thread. What is called of SentencePiece REQUIRES that it was ok. Errors: unsupported, where it is
// not installed or is not the one whose headers Systole was built with.
Status load_sentencepiece_library();
Status load_sentencepiece_trainer();  // and the library

}  // namespace systole
