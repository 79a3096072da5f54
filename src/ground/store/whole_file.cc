#include "ground/store/whole_file.h"

#include <filesystem>
#include <span>

#include "ground/store/unfinished_name.h"

namespace systole {

WholeFile::WholeFile(const std::string& path, const std::string& hint) {
  const std::filesystem::path at(path);
  name_ = at.filename().string();
  if (name_.empty()) fail(error(ErrorKind::invalid, "'{}' names no file", path).hinted(hint));
  std::error_code code;
  if (const auto there = std::filesystem::status(at, code); exists(there) && !is_regular_file(there))
    fail(error(ErrorKind::invalid, "'{}' is there, and no file to replace", path).hinted(hint));
  store_ = open_posix_store(at.has_parent_path() ? at.parent_path().string() : ".").value();
  part_ = unfinished_name(name_, ".part");
  file_ = store_->create(part_).value();
}

WholeFile::~WholeFile() {
  if (file_ != nullptr) (void)store_->remove(part_);
}

void WholeFile::append(std::string_view text) { file_->append(std::as_bytes(std::span(text))).value(); }

void WholeFile::finish() {
  file_->sync().value();
  file_->close().value();
  store_->rename(part_, name_).value();
  store_->sync_dir("").value();
  file_.reset();
}

}  // namespace systole
