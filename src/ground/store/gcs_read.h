#pragma once
// Reads bytes of one version of an object by ranges, several at a time. A range that breaks off goes on where it ended.

#include "ground/store/gcs_api.h"

namespace systole {

// What the first range tells of the whole object.
struct GcsSeen {
  std::string generation;
  Bytes size{};
  std::optional<std::uint32_t> crc32c;  // of all bytes, if the server says it
};

// Fills `into` from `offset`; all bytes are of one generation, and their CRC32C is compared if they are all there are.
// Errors: not_found, io; corrupt when the object is shorter, or its bytes have another checksum.
Status read_gcs_range(GcsApi& api, std::string_view path, std::int64_t offset, std::span<std::byte> into);
// The same of this generation alone. Errors: also busy, it is gone.
Status read_gcs_version(GcsApi& api, std::string_view path, const std::string& generation, std::int64_t offset,
                        std::span<std::byte> into);
// All bytes of one version. Errors: not_found, io; corrupt; does_not_fit if larger than `limit`.
Result<Versioned> read_gcs_whole(GcsApi& api, std::string_view path, Bytes limit);

}  // namespace systole
