#include "execute/data/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "ground/store/git_lfs.h"

namespace systole {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;
constexpr const char* kMark = "systole_tokenizer";
constexpr const char* kPieces = "spiece.model";  // T5's; a tokenizer.json beside it has the same content
constexpr Bytes kLargestFile = kMiB * 256;
constexpr std::array<const char*, 2> kSayMore = {"tokenizer_config.json", "special_tokens_map.json"};
constexpr std::array<const char*, 6> kAll = {"tokenizer.json", "vocab.json", "merges.txt",
                                             "vocab.txt",      kSayMore[0],  kSayMore[1]};

Error damaged(std::string_view why) {
  return error(ErrorKind::corrupt, "this tokenizer is damaged: {}", why).hinted("copy its files again");
}

std::string beside(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

Status add_file(Store& store, const std::string& folder, const std::string& name, TokenizerFiles& files) {
  const std::string path = beside(folder, name);
  TRY(refuse_lfs_pointer(store, path));
  std::string text = TRY(read_text(store, path, kLargestFile));
  if (!name.ends_with(".txt") && !Json::accept(text)) {
    return error(ErrorKind::corrupt, "this file is not JSON").at({path}).hinted("copy it again");
  }
  files.emplace(name, std::move(text));
  return {};
}

Result<std::string> model_file(Store& store, const std::string& path) {
  TRY(refuse_lfs_pointer(store, path));
  return read_text(store, path, kLargestFile);
}

// With what stands beside `name`.
Result<std::string> bundled(Store& store, const std::string& folder, const std::string& name) {
  TokenizerFiles files;
  if (name == "tokenizer.json" || name == "vocab.txt") {
    TRY(add_file(store, folder, name, files));
  } else {
    if (!TRY(store.exists(beside(folder, "merges.txt")))) {
      return error(ErrorKind::not_found, "vocab.json says which tokens there are, and merges.txt how they are made")
          .at({beside(folder, "merges.txt")})
          .hinted("put merges.txt beside vocab.json");
    }
    TRY(add_file(store, folder, "vocab.json", files));
    TRY(add_file(store, folder, "merges.txt", files));
  }
  for (const char* more : kSayMore) {
    if (TRY(store.exists(beside(folder, more)))) TRY(add_file(store, folder, more, files));
  }
  return bundle_tokenizer(files);
}

}  // namespace

std::string bundle_tokenizer(const TokenizerFiles& files) {
  Json json = {{kMark, kVersion}, {"files", Json::object()}};
  for (const auto& [name, text] : files) json["files"][name] = text;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<TokenizerFiles> unbundle_tokenizer(std::string_view serialised) {
  // A tokenizer.json is large; it is parsed by its reader, not here.
  const std::string_view head = serialised.substr(0, std::min<std::size_t>(serialised.size(), 64));
  if (head.find(kMark) == std::string_view::npos) return TokenizerFiles{{"tokenizer.json", std::string(serialised)}};
  TokenizerFiles files;
  try {
    const Json json = Json::parse(serialised);
    if (const int version = json.at(kMark).get<int>(); version > kVersion) {
      return error(ErrorKind::unsupported, "this tokenizer was kept in version {}; this Systole reads up to version {}",
                   version, kVersion)
          .coded(ErrorCode::newer_version)
          .hinted("use the Systole that wrote it or a newer one");
    }
    for (const auto& [name, text] : json.at("files").items()) {
      if (std::find(kAll.begin(), kAll.end(), name) == kAll.end())  // an export writes each file under its name
        return damaged(fmt::format("'{}' is no file of a tokenizer", name));
      files.emplace(name, text.get<std::string>());
    }
  } catch (const Json::exception& bad) { return damaged(bad.what()); }
  return files;
}

Result<std::string> read_tokenizer(Store& store, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name == "tokenizer.json" || name == "vocab.json" || name == "merges.txt" || name == "vocab.txt")
    return bundled(store, folder, name);
  if (const auto names = store.list(path); !names.ok()) {
    if (names.error().kind == ErrorKind::io) return names.error();
    return model_file(store, path);
  }
  if (TRY(store.exists(beside(path, kPieces)))) return model_file(store, beside(path, kPieces));
  for (const char* file : {"tokenizer.json", "vocab.json", "vocab.txt"}) {
    if (TRY(store.exists(beside(path, file)))) return bundled(store, path, file);
  }
  if (TRY(store.exists(beside(path, "tokenizer.model")))) return model_file(store, beside(path, "tokenizer.model"));
  return error(ErrorKind::not_found, "this folder holds no tokenizer")
      .at({path})
      .hinted("looked for: spiece.model, tokenizer.json, vocab.json with merges.txt, vocab.txt, tokenizer.model");
}

}  // namespace systole
