#include "operate/run/rendered_folder.h"

#include <filesystem>
#include <map>
#include <optional>

#include "ground/base/document.h"
#include "ground/store/sha256.h"
#include "ground/store/store.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

constexpr const char* kList = ".rendered";

struct Before {
  std::string run;
  std::map<std::string, std::string> files;  // path → digest
};

Result<std::optional<std::string>> text_of(Store& store, const std::string& path) {
  Result<std::string> text = read_text(store, path);
  if (text.ok()) return std::optional<std::string>(*std::move(text));
  if (text.error().kind == ErrorKind::not_found) return std::optional<std::string>();
  return std::move(text).error();
}

Result<Before> before(Store& store, const std::string& folder) {
  const std::optional<std::string> text = TRY(text_of(store, kList));
  if (!text) return Before();
  const Node node = TRY(parse_json(*text, folder + "/" + kList));
  Before before{.run = TRY(TRY(node.get("run"))->as_string()), .files = {}};
  for (const Node::Entry& file : TRY(node.get("files"))->entries())
    before.files[file.key] = TRY(file.value.as_string());
  return before;
}

// Refuses to lose files.
Status check(Store& store, const Rendered& rendered, const Before& before, const std::string& folder) {
  const auto refused = [&](const std::string& what, const std::string& instead) {
    return error(ErrorKind::exists, "{}", what).hinted(fmt::format("{}, or --replace", instead));
  };
  const std::string other = "--out " + shell_word(folder + "-" + rendered.run);
  if (!before.run.empty() && before.run != rendered.run)
    return refused(fmt::format("{} holds the files of the run '{}'", folder, before.run), other);
  for (const auto& [path, digest] : before.files) {
    const std::optional<std::string> text = TRY(text_of(store, path));
    if (text && sha256_of(*text) != digest)
      return refused(fmt::format("{}/{} was edited since it was rendered", folder, path), other);
  }
  for (const RenderedFile& file : rendered.files) {
    if (before.files.contains(file.path)) continue;
    const std::optional<std::string> text = TRY(text_of(store, file.path));
    if (text && *text != file.text)
      return refused(fmt::format("{}/{} is there, and render did not write it", folder, file.path), other);
  }
  return {};
}

Status write(Store& store, const std::string& path, const std::string& text) {
  if (const std::size_t slash = path.rfind('/'); slash != path.npos) TRY(store.make_dirs(path.substr(0, slash)));
  return write_whole(store, path, text);
}

}  // namespace

Result<WrittenFiles> write_rendered(const Rendered& rendered, const std::string& folder, bool replace) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return error(ErrorKind::io, "{}: {}", folder, failed.message()).hinted("--out another folder");
  const std::unique_ptr<Store> store = TRY(open_posix_store(folder));
  const Before old = TRY(before(*store, folder));
  if (!replace) TRY(check(*store, rendered, old, folder));
  WrittenFiles written;
  Node files = Node::map();
  for (const RenderedFile& file : rendered.files) files.set(file.path, sha256_of(file.text));
  for (const auto& [path, digest] : old.files) {
    if (files.find(path) != nullptr || !TRY(text_of(*store, path))) continue;
    TRY(store->remove(path));
    written.removed.push_back(path);
  }
  for (const RenderedFile& file : rendered.files) {
    const std::optional<std::string> text = TRY(text_of(*store, file.path));
    if (text && *text != file.text) written.replaced.push_back(file.path);
    TRY(write(*store, file.path, file.text));
  }
  TRY(write(*store, kList, to_json(Node::map({{"run", rendered.run}, {"files", files}})) + "\n"));
  return written;
}

}  // namespace systole
