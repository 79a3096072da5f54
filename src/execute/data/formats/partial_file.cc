#include "execute/data/formats/partial_file.h"

#include "ground/store/path.h"
#include "ground/store/unfinished_name.h"

namespace systole {
namespace {

constexpr std::size_t kPendingBytes = std::size_t{1} << 20;

}  // namespace

PartialFile::PartialFile(Store& store, std::string path) : store_(store), path_(std::move(path)) {
  partial_ = unfinished_name(path_, ".partial");
}

Result<std::unique_ptr<PartialFile>> PartialFile::create(Store& store, std::string path) {
  std::unique_ptr<PartialFile> made(new PartialFile(store, std::move(path)));
  made->file_ = TRY(store.create(made->partial_));
  made->pending_.reserve(kPendingBytes);
  return made;
}

PartialFile::~PartialFile() {
  if (file_ == nullptr) return;
  file_.reset();
  (void)store_.remove(partial_);
}

Status PartialFile::append(std::span<const std::byte> bytes) {
  size_ += static_cast<std::int64_t>(bytes.size());
  if (pending_.size() + bytes.size() > kPendingBytes) TRY(flush());
  if (bytes.size() >= kPendingBytes) return file_->append(bytes);
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  return Done{};
}

Status PartialFile::flush() {
  if (!pending_.empty()) TRY(file_->append(pending_));
  pending_.clear();
  return Done{};
}

Status PartialFile::finish() {
  TRY(flush());
  TRY(file_->sync());
  TRY(file_->close());
  TRY(store_.rename(partial_, path_));
  file_.reset();
  return store_.sync_dir(parent_of(path_));
}

}  // namespace systole
