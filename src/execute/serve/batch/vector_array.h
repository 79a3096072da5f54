#pragma once
// The vectors of a finished batch of embeddings as one array of NumPy's format (.npy, version 1.0): float32, a row for
// each row of the input, in their order; NaN where a row has an error. np.load(file, mmap_mode="r") maps it.

#include <string>

#include "ground/store/store.h"

namespace systole {

// Writes `array` whole, from the lines of the output. Errors: invalid: a line has no vector as numbers, or one of another
// length; those of the store.
Status write_vector_array(Store& store, const std::string& lines, const std::string& array);

}  // namespace systole
