#include "execute/data/formats/webdataset.h"

#include <algorithm>

#include "execute/data/formats/field_names.h"
#include "execute/data/formats/tar_samples.h"

namespace systole {
namespace {

Compression compression_of_tar(std::string_view path) {
  return path.ends_with(".tgz") ? Compression::gzip : compression_of(path, Compression::by_name);
}

class WebDatasetReader : public RecordReader {
 public:
  WebDatasetReader(std::unique_ptr<ByteWindow> window, const RecordFile& file, const RecordLimits& limits)
      : samples_(std::move(window), file.shown, limits.largest_record), shown_(file.shown) {}

  Status make_index() {
    TarSample sample;
    std::int64_t at = 0;
    while (TRY(samples_.read(at, count(), sample, true))) {
      offsets_.push_back(sample.begin);
      at = sample.end;
    }
    offsets_.shrink_to_fit();
    end_ = sample.end;
    has_index_ = true;
    return Done{};
  }

  Result<bool> next(DataRecord& record) override {
    goes_on_ = false;
    if (ended_) return false;
    Result<bool> more = samples_.read(at_, next_, sample_);
    if (!more.ok()) {
      goes_on_ = samples_.resumes_at() >= 0;
      at_ = samples_.resumes_at();
      ++next_;
      return more;
    }
    ended_ = !*more;
    at_ = sample_.end;
    record = {next_, sample_.begin, {}};
    if (*more) ++next_;
    return more;
  }
  bool goes_on() const override { return goes_on_; }

  bool has_index() const override { return has_index_; }
  std::int64_t count() const override { return static_cast<std::int64_t>(offsets_.size()); }
  Status read(std::int64_t index, DataRecord& record) override {
    const auto i = static_cast<std::size_t>(index);
    const std::int64_t begin = offsets_[i], end = i + 1 < offsets_.size() ? offsets_[i + 1] : end_;
    if (end - begin <= kMostPrefetched) TRY(samples_.prefetch(begin, end));
    if (!TRY(samples_.read(begin, index, sample_)))
      return record_error(ErrorKind::corrupt, {shown_, index, begin}, "the sample is gone: the file has changed");
    record = {index, sample_.begin, {}};
    return Done{};
  }

  Result<std::string_view> field(const DataRecord& record, std::string_view name) override {
    if (name == "__key__") return std::string_view(sample_.key);
    if (is_whole(name) && sample_.count == 1) return samples_.bytes_of(sample_.members[0]);
    for (std::size_t i = 0; i < sample_.count; ++i)
      if (sample_.members[i].field == name) return samples_.bytes_of(sample_.members[i]);
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < sample_.count; ++i) names.push_back(sample_.members[i].field);
    return nested_field(
        {shown_, record.index, record.byte}, "sample", name, names,
        [&](std::size_t i) -> Result<std::string_view> { return samples_.bytes_of(sample_.members[i]); }, scratch_);
  }
  std::vector<std::string> field_names() override {
    std::vector<std::string> names{"__key__"};
    for (std::size_t i = 0; i < sample_.count; ++i) names.push_back(sample_.members[i].field);
    return names;
  }

 private:
  static constexpr std::int64_t kMostPrefetched = 64 << 20;

  TarSamples samples_;
  std::string shown_;
  TarSample sample_;
  std::string scratch_;
  std::int64_t at_ = 0, next_ = 0, end_ = 0;
  std::vector<std::int64_t> offsets_;
  bool ended_ = false, goes_on_ = false, has_index_ = false;
};

}  // namespace

bool is_tar_name(std::string_view path) {
  for (const std::string_view ending : {".tar", ".tar.gz", ".tgz", ".tar.zst"})
    if (path.ends_with(ending)) return true;
  return false;
}

Result<std::unique_ptr<RecordReader>> open_webdataset(const RecordFile& file, const WebDatasetOptions& options) {
  std::unique_ptr<ByteWindow> window = TRY(ByteWindow::open(file, compression_of_tar(file.path)));
  const bool index = options.index && window->seekable();
  auto reader = std::make_unique<WebDatasetReader>(std::move(window), file, options.limits);
  if (index) TRY(reader->make_index());
  return std::unique_ptr<RecordReader>(std::move(reader));
}

}  // namespace systole
