// .npy and .npz files (execute/data/formats): whatever the bytes, opening and reading ends in rows or an Error.

#include <cstdint>
#include <string>

#include "execute/data/formats/numpy.h"
#include "execute/data/formats/testing/some_records.h"

using namespace systole;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<Store> store = make_memory_store();
  write_whole(*store, "a", std::string_view(reinterpret_cast<const char*>(data), size)).value();
  const RecordFile file{store.get(), "a", "a"};
  read_everything(open_npy(file, {.limits = {Bytes(1 << 20)}}), ".");
  read_everything(open_npz(file, {.limits = {Bytes(1 << 20)}, .largest_archive = Bytes(64 << 20)}), ".");
  return 0;
}
