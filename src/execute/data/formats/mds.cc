#include "execute/data/formats/mds.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "execute/data/formats/byte_window.h"
#include "execute/data/formats/field_names.h"
#include "execute/data/formats/mds_index.h"

namespace systole {
namespace {

constexpr std::size_t kMostOpen = 64;  // plain shards held open

std::uint32_t u32_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Whether the bytes are at fault, and not the disk or the network, which may answer the next time.
bool is_of_the_file(const Error& error) {
  return error.kind == ErrorKind::corrupt || error.kind == ErrorKind::invalid || error.kind == ErrorKind::unsupported;
}

class MdsReader : public RecordReader {
 public:
  MdsReader(RecordFile folder, std::vector<MdsShard> shards, const RecordLimits& limits)
      : folder_(std::move(folder)), largest_(limits.largest_record.count()) {
    for (MdsShard& shard : shards) {
      begins_.push_back(count_);
      count_ += shard.samples;
      shards_.push_back({std::move(shard), nullptr, {}, {}, {}});
    }
  }

  Result<bool> next(DataRecord& record) override {
    goes_on_ = false;
    if (next_ == count_) return false;
    const std::int64_t index = next_++;
    Status got = read(index, record);
    if (!got.ok()) {
      goes_on_ = is_of_the_file(got.error());  // a whole shard that cannot be read is told once for each of its samples
      return std::move(got).error();
    }
    return true;
  }
  bool goes_on() const override { return goes_on_; }
  bool has_index() const override { return true; }
  std::int64_t count() const override { return count_; }

  Status read(std::int64_t index, DataRecord& record) override {
    const auto s = static_cast<std::size_t>(std::ranges::upper_bound(begins_, index) - begins_.begin() - 1);
    Shard& shard = shards_[s];
    if (shard.failed) return *shard.failed;
    if (shard.window == nullptr) {
      if (Status opened = open(shard); !opened.ok()) {
        if (is_of_the_file(opened.error())) shard.failed = opened.error();
        return opened;
      }
    }
    const auto i = static_cast<std::size_t>(index - begins_[s]);
    const std::int64_t begin = shard.offsets[i], end = shard.offsets[i + 1];
    const RecordPlace place{shard.shown, index, begin};
    if (end - begin > largest_)
      return record_error(ErrorKind::invalid, place,
                          fmt::format("the sample has {} bytes, and the largest allowed is {}",
                                      with_commas(end - begin), with_commas(largest_)),
                          "raise largest_document");
    bytes_ = TRY(shard.window->bytes(begin, end));
    shard_ = &shard;
    record = {index, begin, bytes_};
    return split(place);
  }

  Result<std::string_view> field(const DataRecord& record, std::string_view name) override {
    const std::vector<MdsColumn>& columns = shard_->about.columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].name != name && !(is_whole(name) && columns.size() == 1)) continue;
      Result<std::string_view> value = decode_mds(columns[i].encoding, values_[i], scratch_);
      if (!value.ok()) return at_record(std::move(value).error(), {shard_->shown, record.index, record.byte});
      return value;
    }
    std::vector<std::string_view> names;
    for (const MdsColumn& column : columns) names.push_back(column.name);
    return nested_field(
        {shard_->shown, record.index, record.byte}, "sample", name, names,
        [&](std::size_t i) -> Result<std::string_view> { return values_[i]; }, scratch_);
  }
  std::vector<std::string> field_names() override {
    std::vector<std::string> names;
    for (const MdsColumn& column : shard_->about.columns) names.push_back(column.name);
    return names;
  }

 private:
  struct Shard {
    MdsShard about;
    std::unique_ptr<ByteWindow> window;  // of a compressed shard, all of its bytes
    std::vector<std::uint32_t> offsets;
    std::string shown;
    std::optional<Error> failed;  // why it could not be opened, so that it is not tried again for each sample
  };

  // Opens the file of a shard and checks its table of offsets.
  Status open(Shard& shard) {
    const MdsShard& about = shard.about;
    const auto path = [&](const std::string& name) { return folder_.path.empty() ? name : folder_.path + "/" + name; };
    const bool plain = about.zip.empty() || TRY(folder_.store->exists(path(about.raw)));
    const std::string& name = plain ? about.raw : about.zip;
    shard.shown = folder_.shown.empty() ? name : folder_.shown + "/" + name;
    Compression compression = Compression::none;
    if (!plain) {
      const std::string kind = about.compression.substr(0, about.compression.find(':'));
      if (kind != "zstd" && kind != "gz")
        return error(ErrorKind::unsupported, "a shard compressed by '{}'; zstd and gz are read", kind)
            .at({shard.shown})
            .hinted("write the dataset with compression='zstd', or decompress its shards beside it");
      compression = kind == "gz" ? Compression::gzip : Compression::zstd;
    }
    close_others(plain);
    std::unique_ptr<ByteWindow> window = TRY(ByteWindow::open({folder_.store, path(name), shard.shown}, compression));
    const std::int64_t stored = plain ? about.raw_bytes : about.zip_bytes;
    if (window->file_size() != stored)
      return record_error(ErrorKind::corrupt, {shard.shown},
                          fmt::format("the file has {} bytes, and index.json says {}", with_commas(window->file_size()),
                                      with_commas(stored)),
                          "copy the shard again: it was perhaps cut short");
    if (!plain) {
      const std::string_view all = TRY(window->bytes(0, about.raw_bytes + 1));
      if (static_cast<std::int64_t>(all.size()) != about.raw_bytes)
        return record_error(ErrorKind::corrupt, {shard.shown},
                            fmt::format("it decompresses to {} bytes, and index.json says {}", with_commas(all.size()),
                                        with_commas(about.raw_bytes)));
    }
    TRY(read_offsets(shard, *window));
    shard.window = std::move(window);
    open_.push_back(&shard);
    return Done{};
  }

  // Of compressed shards one is in memory; of plain ones some are open.
  void close_others(bool plain) {
    const Shard* oldest = open_.size() >= kMostOpen ? open_.front() : nullptr;
    std::erase_if(open_, [&](Shard* shard) {
      const bool closed = shard == oldest || (!plain && !shard->window->seekable());
      if (closed) shard->window.reset();
      return closed;
    });
  }

  Status read_offsets(Shard& shard, ByteWindow& window) {
    const MdsShard& about = shard.about;
    const auto wrong = [&](std::int64_t byte, std::string what) {
      return record_error(ErrorKind::corrupt, {shard.shown, -1, byte}, what, "copy the shard and index.json again");
    };
    const std::int64_t table = 4 + 4 * (about.samples + 1);
    if (table > about.raw_bytes) return wrong(0, "the shard is too short for the samples that index.json counts");
    const std::string_view bytes = TRY(window.bytes(0, table));
    if (u32_at(bytes, 0) != about.samples)
      return wrong(0, fmt::format("the shard has {} samples, and index.json says {}", u32_at(bytes, 0), about.samples));
    if (!shard.offsets.empty()) return Done{};  // opened before
    std::vector<std::uint32_t> offsets(static_cast<std::size_t>(about.samples + 1));
    std::memcpy(offsets.data(), bytes.data() + 4, offsets.size() * sizeof(std::uint32_t));
    std::int64_t before = table;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] < before || offsets[i] > about.raw_bytes)
        return wrong(static_cast<std::int64_t>(4 + 4 * i),
                     fmt::format("the offset {} of sample {} is not in the file behind the one before",
                                 with_commas(offsets[i]), with_commas(i)));
      before = offsets[i];
    }
    if (before != about.raw_bytes) return wrong(table - 4, "the last sample does not end with the file");
    shard.offsets = std::move(offsets);
    return Done{};
  }

  // bytes_ into values_.
  Status split(const RecordPlace& place) {
    const std::vector<MdsColumn>& columns = shard_->about.columns;
    values_.resize(columns.size());
    std::size_t head = 0;
    for (const MdsColumn& column : columns) head += column.size < 0 ? 4 : 0;
    std::size_t at = head, size_at = 0;
    const auto wrong = [&] {
      return record_error(ErrorKind::corrupt, place, "the sizes of the columns are not those of the sample");
    };
    if (head > bytes_.size()) return wrong();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      std::size_t size = static_cast<std::size_t>(columns[i].size);
      if (columns[i].size < 0) {
        size = u32_at(bytes_, size_at);
        size_at += 4;
      }
      if (size > bytes_.size() - at) return wrong();
      values_[i] = bytes_.substr(at, size);
      at += size;
    }
    return at == bytes_.size() ? Status() : Status(wrong());
  }

  RecordFile folder_;
  std::int64_t largest_, count_ = 0, next_ = 0;
  std::vector<std::int64_t> begins_;  // each shard's first sample
  std::vector<Shard> shards_;
  std::vector<Shard*> open_;  // in the order of opening
  bool goes_on_ = false;
  Shard* shard_ = nullptr;  // of the last record
  std::string_view bytes_;
  std::vector<std::string_view> values_;
  std::string scratch_;
};

}  // namespace

bool is_mds_name(std::string_view path) {
  for (const std::string_view ending : {".mds", ".mds.zstd", ".mds.gz"})
    if (path.ends_with(ending)) return true;
  return false;
}

Result<std::unique_ptr<RecordReader>> open_mds(const RecordFile& file, const RecordLimits& limits) {
  constexpr std::string_view kIndex = "index.json";
  RecordFile folder = file;
  if (is_mds_name(file.path)) {
    MdsShard shard = TRY(read_mds_shard(file));
    for (std::string* name : {&folder.path, &folder.shown})
      name->resize(name->find('/') == name->npos ? 0 : name->rfind('/'));
    std::vector<MdsShard> one;
    one.push_back(std::move(shard));
    return std::unique_ptr<RecordReader>(std::make_unique<MdsReader>(std::move(folder), std::move(one), limits));
  }
  if (folder.path == kIndex || folder.path.ends_with("/index.json")) {
    for (std::string* name : {&folder.path, &folder.shown})
      name->resize(name->size() - std::min(name->size(), kIndex.size() + (name->size() > kIndex.size() ? 1 : 0)));
  }
  RecordFile index = folder;
  index.path += index.path.empty() ? "index.json" : "/index.json";
  index.shown += index.shown.empty() ? "index.json" : "/index.json";
  std::vector<MdsShard> shards = TRY(read_mds_index(index));
  return std::unique_ptr<RecordReader>(std::make_unique<MdsReader>(std::move(folder), std::move(shards), limits));
}

}  // namespace systole
