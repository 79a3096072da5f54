#pragma once
// Packs a published model in int8 or int4 (execute/weights/packed_folder.h), if it then predicts a text about as well as before.

#include <string>

#include "execute/serve/text_bits.h"
#include "operate/run/served_model.h"

namespace systole {

struct QuantizeOptions {
  std::string out;              // the folder to make
  std::string text;             // held out; of a long one the beginning is predicted
  DType parameter = DType::i8;  // or kInt4 (ground/tensor/int4.h)
  double limit = 1;             // most change of bits per byte, in percent
};

struct QuantizedModel {
  TextBits stored, packed;  // of the text, with weights as stored and in int8 or int4
  double percent = 0;       // how far bits per byte are apart, of the stored one's
  bool written = false;     // false: percent is above the limit, and no folder was made
  Bytes bytes;              // of the packed weights
};

// The weights are those of load_int8, to the bit. The folder is whole or absent, unless the process is killed: then
// "<out>.part" is left. Errors: exists: `out`, or that; invalid: a run, a packed folder, a text without tokens;
// unsupported: the model does not go on from a text, or has experts; no_space, io; those of the engine.
Result<QuantizedModel> quantize_model(const ServedModel& model, const Machine& machine, const QuantizeOptions& options);

}  // namespace systole
