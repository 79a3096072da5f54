// Stubs for the SentencePiece functions that we call; each jumps into the loaded library, so that the linker does not
// need libsentencepiece.so. The functions are class members: a stub has the member's mangled name of the C++ ABI and
// takes the object first, as that ABI calls members. A missing stub fails at link time, a function missing in the
// library fails at load time. A mangled name contains the parameter types, so changed parameters fail too.

#include "execute/data/sentencepiece_library.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ground/base/late_library.h"

// Name, symbol, result, parameters, arguments.
#define PROCESSOR(name) "_ZN13sentencepiece22SentencePieceProcessor" name
#define CONST_PROCESSOR(name) "_ZNK13sentencepiece22SentencePieceProcessor" name
#define VIEW "St17basic_string_viewIcSt11char_traitsIcEE"
#define FUNCTIONS(X)                                                                                                   \
  X(make, PROCESSOR("C1Ev"), void, (Processor * self), (self))                                                         \
  X(destroy, PROCESSOR("D1Ev"), void, (Processor * self), (self))                                                      \
  X(load, PROCESSOR("23LoadFromSerializedProtoE" VIEW), SpStatus, (Processor * self, std::string_view model),          \
    (self, model))                                                                                                     \
  X(encode, CONST_PROCESSOR("6EncodeE" VIEW "PSt6vectorIiSaIiEE"), SpStatus,                                           \
    (const Processor* self, std::string_view text, std::vector<int>* ids), (self, text, ids))                          \
  X(size, CONST_PROCESSOR("12GetPieceSizeEv"), int, (const Processor* self), (self))                                   \
  X(id_of, CONST_PROCESSOR("9PieceToIdE" VIEW), int, (const Processor* self, std::string_view piece), (self, piece))   \
  X(piece_of, CONST_PROCESSOR("9IdToPieceB5cxx11Ei"), const std::string&, (const Processor* self, int id), (self, id)) \
  X(is_control, CONST_PROCESSOR("9IsControlEi"), bool, (const Processor* self, int id), (self, id))                    \
  X(is_unknown, CONST_PROCESSOR("9IsUnknownEi"), bool, (const Processor* self, int id), (self, id))                    \
  X(is_byte, CONST_PROCESSOR("6IsByteEi"), bool, (const Processor* self, int id), (self, id))                          \
  X(bos, CONST_PROCESSOR("6bos_idEv"), int, (const Processor* self), (self))                                           \
  X(eos, CONST_PROCESSOR("6eos_idEv"), int, (const Processor* self), (self))                                           \
  X(pad, CONST_PROCESSOR("6pad_idEv"), int, (const Processor* self), (self))                                           \
  X(make_status, "_ZN13sentencepiece4util6StatusC1Ev", void, (SpStatus * self), (self))                                \
  X(destroy_status, "_ZN13sentencepiece4util6StatusD1Ev", void, (SpStatus * self), (self))                             \
  X(message, "_ZNK13sentencepiece4util6Status13error_messageEv", const char*, (const SpStatus* self), (self))          \
  X(text, "_ZNK13sentencepiece4util6Status8ToStringB5cxx11Ev", std::string, (const SpStatus* self), (self))

#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define TRAINER(X)                                                                                        \
  X(train,                                                                                                \
    "_ZN13sentencepiece20SentencePieceTrainer5TrainERKSt13unordered_mapI" STRING                          \
    "S7_St4hashIS7_ESt8equal_toIS7_"                                                                      \
    "ESaISt4pairIKS7_S7_EEEPNS_16SentenceIteratorEPS7_",                                                  \
    SpStatus, (const Settings& settings, sentencepiece::SentenceIterator* sentences, std::string* model), \
    (settings, sentences, model))

namespace systole {
namespace {

using Processor = sentencepiece::SentencePieceProcessor;
using SpStatus = sentencepiece::util::Status;
using Settings = std::unordered_map<std::string, std::string>;

struct Entries {
#define MEMBER(name, symbol, result, parameters, arguments) result(*name) parameters = nullptr;
  FUNCTIONS(MEMBER)
  TRAINER(MEMBER)
#undef MEMBER
};

Entries& entries() {
  static Entries entries;
  return entries;
}

constexpr const char* kWhy = "this tokenizer is SentencePiece's";
constexpr const char* kPackage = "libsentencepiece0";

#define FILL(name, symbol, result, parameters, arguments) TRY(library.fill(entries().name, symbol));
Status load_processor() {
  const LateLibrary library = TRY(LateLibrary::load({"libsentencepiece.so.0", kPackage, kWhy}));
  FUNCTIONS(FILL)
  return {};
}

Status load_trainer() {
  const LateLibrary library = TRY(LateLibrary::load({"libsentencepiece_train.so.0", kPackage, kWhy}));
  TRAINER(FILL)
  return {};
}
#undef FILL

}  // namespace

// Hidden: the library calls its own.
#define STAND_IN(name, symbol, result, parameters, arguments)                                    \
  __attribute__((visibility("hidden"), used)) result stand_in_##name parameters __asm__(symbol); \
  result stand_in_##name parameters { return entries().name arguments; }
FUNCTIONS(STAND_IN)
TRAINER(STAND_IN)
#undef STAND_IN

Status load_sentencepiece_library() {
  static const Status loaded = load_processor();
  return loaded;
}

Status load_sentencepiece_trainer() {
  static const Status loaded = load_trainer();
  TRY(load_sentencepiece_library());
  return loaded;
}

}  // namespace systole
