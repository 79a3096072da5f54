#include "execute/data/formats/array_record.h"
#include "execute/data/formats/example.h"
#include "execute/data/formats/riegeli.h"
#include "execute/data/formats/wire.h"

namespace systole {
namespace {

constexpr int kPostscripts = 3;  // equal ones

class ArrayRecordWriter : public RecordWriter {
 public:
  ArrayRecordWriter(std::unique_ptr<PartialFile> file, const ArrayRecordOptions& options)
      : options_(options),
        chunks_(std::move(file)),
        encoder_(compression(), options.zstd_level),
        footer_(compression(), options.zstd_level) {}

  Status begin() { return chunks_.write(ChunkType::signature, {}, 0, 0); }

  Status add(std::string_view record) override {
    encoder_.add(record);
    return encoder_.records() == static_cast<std::uint64_t>(options_.group_size) ? flush() : Status(Done{});
  }

  Status add_fields(std::span<const RecordField> fields) override { return add(make_example(fields)); }

  Status finish() override {
    if (encoder_.records() > 0) TRY(flush());
    footer_.add(metadata());
    for (const std::string& place : places_) footer_.add(place);
    std::string postscript;
    put_number(postscript, 1, static_cast<std::uint64_t>(chunks_.size()));
    put_number(postscript, 2, kArrayRecordMagic);
    TRY(write(footer_));
    TRY(chunks_.pad_to_block());
    SimpleEncoder last(ChunkCompression::none, 0);
    for (int i = 0; i < kPostscripts; ++i) last.add(postscript);
    TRY(write(last));
    TRY(chunks_.pad_to_block());
    return chunks_.finish();
  }

 private:
  ChunkCompression compression() const {
    return options_.zstd_level > 0 ? ChunkCompression::zstd : ChunkCompression::none;
  }

  Status write(SimpleEncoder& encoder) {
    const std::uint64_t records = encoder.records(), decoded = encoder.decoded_size();
    return chunks_.write(ChunkType::simple, TRY(encoder.take()), records, decoded);
  }

  Status flush() {
    std::string place;
    put_number(place, 1, static_cast<std::uint64_t>(chunks_.size()));
    put_number(place, 2, encoder_.decoded_size());
    put_number(place, 3, encoder_.records());
    records_ += encoder_.records();
    places_.push_back(std::move(place));
    TRY(write(encoder_));
    return options_.pad_to_block_boundary ? chunks_.pad_to_block() : Status(Done{});
  }

  std::string metadata() const {
    std::string about, result;
    put_number(about, 1, 1);
    put_number(about, 2, places_.size());
    put_number(about, 3, records_);
    put_bytes(about, 4,
              fmt::format("group_size:{},transpose:false,pad_to_block_boundary:{},{},max_parallelism:1",
                          options_.group_size, options_.pad_to_block_boundary,
                          options_.zstd_level > 0 ? fmt::format("zstd:{},window_log:20", options_.zstd_level)
                                                  : "uncompressed"));
    put_bytes(result, 1, about);
    return result;
  }

  ArrayRecordOptions options_;
  ChunkWriter chunks_;
  SimpleEncoder encoder_, footer_;
  std::vector<std::string> places_;  // of the chunks, as the footer has them
  std::uint64_t records_ = 0;
};

}  // namespace

Result<std::unique_ptr<RecordWriter>> create_array_record(Store& store, const std::string& path,
                                                          const ArrayRecordOptions& options) {
  CHECK(options.group_size >= 1 && options.zstd_level >= 0 && options.zstd_level <= 22, "options of an ArrayRecord");
  auto writer = std::make_unique<ArrayRecordWriter>(TRY(PartialFile::create(store, path)), options);
  TRY(writer->begin());
  return std::unique_ptr<RecordWriter>(std::move(writer));
}

}  // namespace systole
