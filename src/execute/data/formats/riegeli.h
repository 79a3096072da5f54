#pragma once
// Chunks of Riegeli/records files (github.com/google/riegeli, doc/riegeli_records_file_format.md), which an ArrayRecord
// consists of. All numbers are little-endian; a hash is HighwayHash-64 with the key "Riegeli/records\n" twice.
//
//   every 64 KiB a block header of 24 bytes interrupts what is there:
//      8  hash of the rest      8  from the interrupted chunk's begin to here      8  from here to that chunk's end
//   chunk header, 40 bytes
//      8  hash of the rest      8  size of the data, block headers not counted      8  hash of the data
//      1  type                  7  records                                          8  size of the records, decoded
//   data, then zeros so that the chunk has at least as many bytes as records and does not end in a block header
//
// Types: 's' the file's first, without data; 'm' metadata; 'p' padding; 'r' simple; 't' transposed. A simple one's
// data:
//
//      1  compression: 0 none, 'z' zstd, 'b' Brotli, 's' Snappy        varint  size of the sizes, as stored
//         sizes of the records as varints                              the records, one after another
//
// Sizes and records are compressed apart; before each, unless it is not compressed, a varint with its decoded size.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "execute/data/formats/partial_file.h"
#include "execute/data/formats/record.h"

namespace systole {

constexpr std::int64_t kRiegeliBlock = 65536, kRiegeliBlockHeader = 24, kRiegeliChunkHeader = 40;

enum class ChunkType : char { signature = 's', metadata = 'm', padding = 'p', simple = 'r', transposed = 't' };
enum class ChunkCompression : char { none = 0, zstd = 'z', brotli = 'b', snappy = 's' };

struct ChunkHeader {
  std::uint64_t data_size = 0, data_hash = 0;
  ChunkType type = ChunkType::simple;
  std::uint64_t records = 0, decoded_size = 0;
};

std::uint64_t riegeli_hash(std::span<const std::byte> bytes);
// Where a chunk ends that begins at `begin`.
std::int64_t chunk_end(std::int64_t begin, const ChunkHeader& header);

// The bytes [begin, begin + bytes.size()) of a file without its block headers, moved together in place.
// Errors: corrupt: a block header's checksum, with the byte.
Result<std::span<std::byte>> without_block_headers(std::int64_t begin, std::span<std::byte> bytes,
                                                   const std::string& shown);

// The records of a simple chunk. Reused, it keeps its memory.
class SimpleChunk {
 public:
  SimpleChunk();
  ~SimpleChunk();
  SimpleChunk(const SimpleChunk&) = delete;
  SimpleChunk& operator=(const SimpleChunk&) = delete;

  // Decodes a chunk from its header on, without block headers. `bytes` must live as long as the records are read, which
  // of an uncompressed chunk are views of it. `place`: of the chunk, for messages. Errors: corrupt; unsupported
  // (transposed, Brotli, Snappy, by name); invalid if it decodes to more than `largest`, or than thousands of times
  // its size.
  Status decode(std::span<const std::byte> bytes, Bytes largest, const RecordPlace& place);
  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
    return values_.substr(begin, ends_[index] - begin);
  }

 private:
  struct Zstd;
  Status decode_sizes(std::span<const std::byte>& data, const ChunkHeader& header, ChunkCompression compression,
                      const RecordPlace& place);
  Result<std::string_view> unpacked(std::string_view stored, ChunkCompression compression, std::uint64_t most,
                                    std::vector<char>& into, const RecordPlace& place);

  std::unique_ptr<Zstd> zstd_;
  std::vector<char> unpacked_sizes_, unpacked_values_;
  std::vector<std::size_t> ends_;
  std::string_view values_;
};

// Reads the header, and checks its hash. REQUIRES: 40 bytes. Errors: corrupt.
Result<ChunkHeader> read_chunk_header(std::span<const std::byte> bytes, const RecordPlace& place);

// Writes chunks one after another.
class ChunkWriter {
 public:
  explicit ChunkWriter(std::unique_ptr<PartialFile> file) : file_(std::move(file)) {}
  Status write(ChunkType type, std::string_view data, std::uint64_t records, std::uint64_t decoded_size);
  Status pad_to_block();  // by a padding chunk
  std::int64_t size() const { return file_->size(); }
  Status finish() { return file_->finish(); }

 private:
  Status put(std::string_view bytes, std::int64_t begin, std::int64_t end);
  std::unique_ptr<PartialFile> file_;
};

// The data of a simple chunk. One thread at a time.
class SimpleEncoder {
 public:
  SimpleEncoder(ChunkCompression compression, int level);  // none or zstd
  ~SimpleEncoder();
  void add(std::string_view record);
  std::uint64_t records() const { return records_; }
  std::uint64_t decoded_size() const { return values_.size(); }
  // The data of what was added since the last call. Errors: internal, if zstd has no memory.
  Result<std::string> take();

 private:
  struct Zstd;
  Result<std::string> packed(const std::string& bytes);
  ChunkCompression compression_;
  std::unique_ptr<Zstd> zstd_;
  std::string sizes_, values_;
  std::uint64_t records_ = 0;
};

}  // namespace systole
