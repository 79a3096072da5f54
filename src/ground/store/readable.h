#pragma once
// A file of a store that is held open to be read at many places: a read costs one call of the system, where Store::read
// opens and closes the file each time. The file stays the same one if its name is given to another meanwhile.

#include <memory>
#include <string_view>

#include "ground/store/store.h"

namespace systole {

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual Bytes size() const = 0;  // when it was opened
  // Fills `into` from `offset`. Callable from several threads. Errors: io; corrupt when the file is shorter.
  virtual Status read(std::int64_t offset, std::span<std::byte> into) const = 0;
};

// A store that can hold a file open; open_to_read asks it. Others read by name each time.
class OpensFiles {
 public:
  virtual ~OpensFiles() = default;
  virtual Result<std::unique_ptr<ReadableFile>> open_to_read(std::string_view path) = 0;
};

// Borrows the store. Errors: as Store::size.
Result<std::unique_ptr<ReadableFile>> open_to_read(Store& store, std::string_view path);

}  // namespace systole
