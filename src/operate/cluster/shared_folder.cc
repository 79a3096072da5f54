#include "operate/cluster/shared_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "ground/store/store.h"
#include "operate/cluster/record.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

class OutputFiles : public Output {
 public:
  OutputFiles(std::unique_ptr<Store> store, std::string id) : store_(std::move(store)), id_(std::move(id)) {}

  Result<std::vector<OutputPiece>> more() override {
    std::vector<OutputPiece> pieces;
    for (const std::string& name : TRY(names())) {
      std::string text = TRY(read(name));
      if (!text.empty()) pieces.push_back({fs::path(name).stem().string(), std::move(text)});
    }
    return pieces;
  }

 private:
  Result<std::vector<std::string>> names() {
    std::vector<std::string> names = TRY(store_->list(""));
    std::erase_if(names, [&](const std::string& name) {
      return name != id_ + ".log" && !(name.starts_with(id_ + "_") && name.ends_with(".log"));
    });
    std::ranges::sort(names, [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
    return names;
  }
  Result<std::string> read(const std::string& name) {
    const Bytes size = TRY(store_->size(name));
    std::int64_t& at = at_[name];
    if (size.count() < at) at = 0;  // the file was replaced
    std::string text(static_cast<std::size_t>(std::min<std::int64_t>(size.count() - at, std::int64_t{64} << 20)), 0);
    if (!text.empty()) TRY(store_->read(name, at, std::as_writable_bytes(std::span(text))));
    at += static_cast<std::int64_t>(text.size());
    return text;
  }

  std::unique_ptr<Store> store_;
  std::string id_;
  std::map<std::string, std::int64_t> at_;
};

}  // namespace

Result<std::unique_ptr<Output>> open_output_files(const std::string& folder, const std::string& id) {
  return std::unique_ptr<Output>(std::make_unique<OutputFiles>(TRY(open_posix_store(folder)), id));
}

Status copy_shared_folder(const Record& record, const std::string& folder, const std::string& into) {
  const std::string path = (fs::path(record.from) / folder).lexically_normal().string();
  std::error_code failed;
  if (!fs::is_directory(path, failed))
    return error(ErrorKind::not_found, "there is no folder '{}' on this machine", path)
        .hinted("run this where the cluster's folders are seen");
  const std::unique_ptr<Store> from = TRY(open_posix_store(path)), to = TRY(open_posix_store(into));
  return copy_tree(*from, *to);
}

}  // namespace systole
