#pragma once
// The part of a Store that reads; what writes is refused. For stores over what is not theirs: objects of a bucket.

#include "ground/store/store.h"

namespace systole {

class ReadOnlyStore : public Store {
 public:
  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override { return refused(path); }
  Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) override { return refused(path); }
  Status make_dirs(std::string_view dir) override { return refused(dir); }
  Status rename(std::string_view, std::string_view to) override { return refused(to); }
  Status link(std::string_view, std::string_view to) override { return refused(to); }
  Status remove(std::string_view path) override { return refused(path); }
  Status remove_dir(std::string_view dir) override { return refused(dir); }
  Status sync_dir(std::string_view) override { return {}; }
  Result<std::unique_ptr<FileLock>> try_lock(std::string_view dir) override { return refused(dir); }
  Result<Bytes> free_space() override { return Bytes(0); }

 private:
  static Error refused(std::string_view path) { return error(ErrorKind::unsupported, "'{}' can only be read", path); }
};

}  // namespace systole
