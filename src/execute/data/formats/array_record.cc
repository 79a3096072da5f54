#include "execute/data/formats/array_record.h"

#include <algorithm>

#include "execute/data/formats/example.h"
#include "execute/data/formats/riegeli.h"
#include "execute/data/formats/wire.h"
#include "ground/store/git_lfs.h"
#include "ground/store/readable.h"

namespace systole {
namespace {

constexpr Bytes kLargestChunk(std::int64_t{1} << 30);
constexpr std::int64_t kWindowBytes = std::int64_t{1} << 20;  // read at once, when records are read in order
constexpr std::int64_t kPadded = 2 * kRiegeliBlock;           // a longer place may be padding for its most part

// Numbers 1 to 4 of a message of the footer. Errors: corrupt.
struct Numbers {
  std::array<std::uint64_t, 5> value{};
  std::array<bool, 5> there{};
};
bool read_numbers(std::string_view message, Numbers& numbers) {
  numbers = {};
  WireReader reader(message);
  WireField field;
  while (reader.next(field)) {
    if (field.number >= numbers.value.size() || field.type == WireType::bytes) continue;
    numbers.value[field.number] = field.value;
    numbers.there[field.number] = true;
  }
  return !reader.failed();
}

class ArrayRecordReader : public RecordReader {
 public:
  ArrayRecordReader(std::string shown, std::unique_ptr<ReadableFile> file, const RecordLimits& limits)
      : shown_(std::move(shown)), file_(std::move(file)), limits_(limits) {}

  Status open() {
    const std::int64_t size = file_->size().count();
    if (size < kRiegeliBlock || size % kRiegeliBlock != 0) return no_array_record("its size is no multiple of 64 KiB");
    postscript_ = size - kRiegeliBlock;
    TRY(check_signature());
    TRY(read_postscript());
    return read_footer();
  }

  Result<bool> next(DataRecord& record) override {
    if (next_ == count_) return false;
    const std::int64_t index = next_++;
    TRY(find(index, true, record));
    return true;
  }
  bool goes_on() const override { return true; }

  bool has_index() const override { return true; }
  std::int64_t count() const override { return count_; }
  Status read(std::int64_t index, DataRecord& record) override { return find(index, false, record); }

  Result<std::string_view> field(const DataRecord& record, std::string_view name) override {
    return field_of_example(record, name, shown_);
  }

 private:
  struct Run {  // of chunks with equally many records: the whole file but its last chunk, in what the library writes
    std::int64_t first_record = 0, first_chunk = 0, records = 0;
  };

  Error no_array_record(std::string_view why) const {
    return record_error(ErrorKind::invalid, {shown_}, fmt::format("this is no ArrayRecord: {}", why),
                        "an ArrayRecord that was not closed, or not copied whole, lacks its end; `format:` says what a "
                        "file is");
  }
  Error damaged(std::string_view what) const {
    return record_error(ErrorKind::corrupt, {shown_}, what, "fetch the file again, or make it again from its source");
  }

  // The bytes [begin, end) of the file, without block headers; valid until the next call.
  Result<std::span<std::byte>> fetch(std::int64_t begin, std::int64_t end) {
    const auto size = static_cast<std::size_t>(end - begin);
    if (scratch_.size() < size) scratch_.resize(size);
    const std::span<std::byte> bytes(scratch_.data(), size);
    Status read = file_->read(begin, bytes);
    if (!read.ok()) return at_record(std::move(read).error(), {shown_, -1, begin});
    return without_block_headers(begin, bytes, shown_);
  }

  // The same of the chunk at `begin`, whose place ends at `end` and may be padding for its most part.
  Result<std::span<std::byte>> fetch_chunk(std::int64_t begin, std::int64_t end, const RecordPlace& place) {
    if (end - begin > kPadded) {
      const std::span<std::byte> first = TRY(fetch(begin, begin + kRiegeliBlockHeader + kRiegeliChunkHeader));
      const ChunkHeader header = TRY(read_chunk_header(first, place));
      if (header.data_size < static_cast<std::uint64_t>(end - begin))
        end = std::min(end, chunk_end(begin, {header.data_size}));
    }
    return fetch(begin, end);
  }

  Status check_signature() {
    const Result<std::span<std::byte>> bytes = fetch(0, kRiegeliBlockHeader + kRiegeliChunkHeader);
    if (!bytes.ok() && bytes.error().kind == ErrorKind::io) return bytes.error();
    const Result<ChunkHeader> header = bytes.ok() ? read_chunk_header(*bytes, {shown_, -1, 0}) : bytes.error();
    if (header.ok() && header->type == ChunkType::signature && header->data_size == 0) return Done{};
    return no_array_record("it does not begin as every Riegeli file");
  }

  Status read_postscript() {
    const Result<std::span<std::byte>> bytes = fetch(postscript_, postscript_ + kRiegeliBlock);
    if (!bytes.ok() && bytes.error().kind == ErrorKind::io) return bytes.error();
    SimpleChunk chunk;
    const Status read =
        bytes.ok() ? chunk.decode(*bytes, kLargestChunk, {shown_, -1, postscript_}) : Status(bytes.error());
    if (!read.ok()) return no_array_record("its last 64 KiB are no postscript: " + read.error().message);
    Numbers numbers;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (!read_numbers(chunk[i], numbers) || numbers.value[2] != kArrayRecordMagic) continue;
      footer_ = static_cast<std::int64_t>(numbers.value[1]);
      if (footer_ < kRiegeliBlockHeader || footer_ >= postscript_)
        return damaged("its postscript points outside the file");
      return Done{};
    }
    return no_array_record("its postscript has not the magic number");
  }

  Status read_footer() {
    const RecordPlace place{shown_, -1, footer_};
    SimpleChunk chunk;
    TRY(chunk.decode(TRY(fetch_chunk(footer_, postscript_, place)), kLargestChunk, place));
    Numbers about;
    std::string_view metadata;
    WireReader reader(chunk.size() > 0 ? chunk[0] : std::string_view());
    for (WireField field; reader.next(field);) {
      if (field.number == 1 && field.type == WireType::bytes) metadata = field.bytes;
    }
    if (reader.failed() || !read_numbers(metadata, about)) return damaged("its footer cannot be parsed");
    if (about.value[1] != 1) {
      return record_error(ErrorKind::unsupported, place,
                          fmt::format("version {} of ArrayRecord is not read, only version 1", about.value[1]));
    }
    if (about.value[2] != chunk.size() - 1) return damaged("its footer has not as many chunks as it says");
    TRY(read_places(chunk));
    if (about.value[3] != static_cast<std::uint64_t>(count_))
      return damaged("its footer has not as many records as it says");
    std::vector<std::byte>().swap(scratch_);
    return Done{};
  }

  Status read_places(const SimpleChunk& footer) {
    offsets_.reserve(footer.size());
    Numbers numbers;
    std::int64_t least = kRiegeliBlockHeader + kRiegeliChunkHeader;
    for (std::size_t i = 1; i < footer.size(); ++i) {
      if (!read_numbers(footer[i], numbers)) return damaged("its footer cannot be parsed");
      const auto offset = static_cast<std::int64_t>(numbers.value[1]),
                 records = static_cast<std::int64_t>(numbers.value[3]);
      if (offset < least || offset >= footer_)
        return damaged("its footer names chunks outside the file, or out of order");
      // A chunk has at least as many bytes as records.
      if (records < 0 || records > footer_ - offset)
        return damaged("its footer names more records than there are bytes");
      least = offset + kRiegeliChunkHeader;
      if (runs_.empty() || runs_.back().records != records)
        runs_.push_back({count_, static_cast<std::int64_t>(i) - 1, records});
      offsets_.push_back(offset);
      count_ += records;
    }
    std::erase_if(runs_, [](const Run& run) { return run.records == 0; });
    return Done{};
  }

  Status find(std::int64_t index, bool in_order, DataRecord& record) {
    auto run = std::upper_bound(runs_.begin(), runs_.end(), index,
                                [](std::int64_t value, const Run& r) { return value < r.first_record; });
    --run;
    const std::int64_t within = index - run->first_record, chunk = run->first_chunk + within / run->records;
    const auto place = static_cast<std::size_t>(within % run->records);
    const std::int64_t begin = offsets_[static_cast<std::size_t>(chunk)];
    if (chunk == open_ && broken_)
      return record_error(*broken_, {shown_, index, begin}, "its group is damaged, as its first record told");
    if (chunk != open_) TRY(decode(chunk, begin, index, in_order));
    if (static_cast<std::int64_t>(chunk_.size()) != run->records)
      return record_error(ErrorKind::corrupt, {shown_, index, begin},
                          "its chunk has not as many records as the footer says");
    record = {.index = index, .byte = begin, .bytes = chunk_[place]};
    if (static_cast<std::int64_t>(record.bytes.size()) <= limits_.largest_record.count()) return Done{};
    return record_error(ErrorKind::invalid, {shown_, index, begin},
                        fmt::format("it is {} bytes long, more than {}", with_commas(record.bytes.size()),
                                    to_string(limits_.largest_record)),
                        "raise `largest_document`, or pass over such records with `on_bad_record: skip`");
  }

  Status decode(std::int64_t chunk, std::int64_t begin, std::int64_t index, bool in_order) {
    const RecordPlace place{shown_, index, begin};
    const bool last = static_cast<std::size_t>(chunk) + 1 == offsets_.size();
    const std::int64_t end = last ? footer_ : offsets_[static_cast<std::size_t>(chunk) + 1];
    open_ = -1;
    broken_.reset();
    const std::span<std::byte> bytes =
        in_order ? TRY(from_window(begin, end, place)) : TRY(fetch_chunk(begin, end, place));
    Status decoded = chunk_.decode(bytes, kLargestChunk, place);
    open_ = chunk;
    if (!decoded.ok()) broken_ = decoded.error().kind;
    return decoded;
  }

  // As fetch_chunk, with what follows read too.
  Result<std::span<std::byte>> from_window(std::int64_t begin, std::int64_t end, const RecordPlace& place) {
    if (end - begin > kWindowBytes) return fetch_chunk(begin, end, place);
    if (begin < window_ || end > window_end_) {
      const std::int64_t size = std::min(kWindowBytes, footer_ - begin);
      ahead_.resize(static_cast<std::size_t>(kWindowBytes));
      window_ = window_end_ = 0;
      Status read = file_->read(begin, std::span(ahead_).first(static_cast<std::size_t>(size)));
      if (!read.ok()) return at_record(std::move(read).error(), place);
      window_ = begin;
      window_end_ = begin + size;
    }
    const std::span<std::byte> bytes =
        std::span(ahead_).subspan(static_cast<std::size_t>(begin - window_), static_cast<std::size_t>(end - begin));
    if (begin / kRiegeliBlock == (end - 1) / kRiegeliBlock && begin % kRiegeliBlock != 0) return bytes;
    if (scratch_.size() < bytes.size()) scratch_.resize(bytes.size());
    std::copy(bytes.begin(), bytes.end(), scratch_.begin());
    return without_block_headers(begin, std::span(scratch_).first(bytes.size()), shown_);
  }

  std::string shown_;
  std::unique_ptr<ReadableFile> file_;
  RecordLimits limits_;
  std::int64_t postscript_ = 0, footer_ = 0, count_ = 0, next_ = 0;
  std::vector<std::int64_t> offsets_;  // of the chunks
  std::vector<Run> runs_;
  std::vector<std::byte> scratch_, ahead_;
  std::int64_t window_ = 0, window_end_ = 0;  // what of the file is in ahead_
  SimpleChunk chunk_;
  std::int64_t open_ = -1;           // the chunk that is decoded
  std::optional<ErrorKind> broken_;  // why it could not be: it is not tried anew for each of its records
};

}  // namespace

Result<std::unique_ptr<RecordReader>> open_array_record(const RecordFile& file, const RecordLimits& limits) {
  Result<std::unique_ptr<ReadableFile>> opened = open_to_read(*file.store, file.path);
  if (!opened.ok()) return std::move(opened).error().at({file.shown});
  if (Status itself = refuse_lfs_pointer(*file.store, file.path); !itself.ok())
    return std::move(itself).error().at({file.shown});
  auto reader = std::make_unique<ArrayRecordReader>(file.shown, *std::move(opened), limits);
  TRY(reader->open());
  return std::unique_ptr<RecordReader>(std::move(reader));
}

}  // namespace systole
