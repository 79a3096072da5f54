#include "operate/run/workload_texts.h"

#include <filesystem>
#include <set>

#include "execute/data/file_patterns.h"
#include "execute/weights/hf_folder.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "operate/observe/run_files.h"
#include "operate/run/run_tokenizer.h"

namespace systole {
namespace {

std::vector<std::string> below_root(const std::vector<std::string>& paths) {
  std::vector<std::string> result;
  for (const std::string& path : paths) result.push_back(systole::below_root(path).value());
  return result;
}

// A folder of MDS is its shards; compressed ones where there are no others. All else is as it is.
std::string shards_of_folder(const std::string& path) {
  if (!is_folder(path) || !path_exists(path + "/index.json")) return path;
  for (const std::filesystem::path& file : paths_in(path))
    if (file.extension() == ".mds") return path + "/*.mds";
  return path + "/*.mds.*";
}

// The tokenizer kept in a run's folder; nothing: it has none, or `run` is empty.
Result<std::optional<std::string>> tokenizer_in(const std::string& run) {
  if (run.empty() || !path_exists(run + "/" + RunFiles::tokenizer)) return std::optional<std::string>();
  const std::unique_ptr<Store> store = TRY(open_posix_store(run));
  return std::optional<std::string>(TRY(read_text(*store, RunFiles::tokenizer)));
}

// Collects the errors of a workload's files, to report all at once.
class FileCheck {
 public:
  // `buckets`: null, then only the form of their names is checked, and no server asked. `source_name`: of a mixture's.
  FileCheck(Store& root, BucketFiles* buckets, const WorkloadSource& source, const std::string& source_name)
      : root_(root), buckets_(buckets), source_(source), source_name_(source_name) {}

  // The files of one text. `key`: their key in the workload.
  TextFiles files(std::vector<std::string> patterns, const std::string& key) {
    if (std::ranges::any_of(patterns, is_bucket_uri)) return files_and_objects(patterns, key);
    for (std::string& pattern : patterns) pattern = shards_of_folder(pattern);
    const std::vector<std::string> below = below_root(patterns);
    const std::size_t before = errors_.size();
    for (std::size_t i = 0; i < below.size(); ++i) {
      if (is_folder(patterns[i])) {
        Error bad = folder_for_files(patterns[i]);
        bad.message = fmt::format("'/{}' is a folder", below[i]);
        add(std::move(bad), key, i);
      } else if (const auto found = expand_files(root_, {below[i]}, "/"); !found.ok()) {
        missing(found.error(), patterns[i], key, i);
      }
    }
    if (errors_.size() > before) return {};
    const auto all = expand_files(root_, below, "/");
    if (!all.ok()) return add(all.error(), key, 0), TextFiles{};
    for (const std::string& file : *all)  // before anything is built of the others
      if (Status opens = check_opens(file); !opens.ok()) add(std::move(opens).error(), key, 0);
    if (errors_.size() > before) return {};
    return {&root_, *all, "/"};
  }

  // A trained tokenizer of the kind that the workload says. A run that goes on has its own if the file is gone.
  std::optional<std::string> tokenizer(const TokenizerSpec& spec, TokenizerUse use, const std::string& run) {
    const std::string key = "data.tokenizer.file", below = below_root({spec.file})[0];
    if (const auto found = expand_files(root_, {below}, "/"); !found.ok()) {
      auto kept = tokenizer_in(run);
      if (kept.ok() && *kept) return *std::move(kept);
      return missing(kept.ok() ? found.error() : kept.error(), spec.file, key, 0), std::nullopt;
    }
    const auto refused = [&](Error bad) {
      if (bad.kind != ErrorKind::io)  // system errors already name the file
        bad.message = fmt::format("'/{}': {}", bad.where.file.empty() ? below : bad.where.file, bad.message);
      bad.where = {};
      if (bad.kind == ErrorKind::corrupt)
        bad.hint =
            "name the .model file that SentencePiece wrote, a tokenizer.json, or a vocab.json beside its merges.txt";
      return add(std::move(bad), key, 0), std::nullopt;
    };
    const auto model = read_any_tokenizer(root_, below);
    if (!model.ok()) return refused(model.error());
    const auto loaded = Tokenizer::load(*model, use);
    if (!loaded.ok()) return refused(loaded.error());
    if (static_cast<int>(loaded->family()) != static_cast<int>(spec.kind)) {
      return refused(error(ErrorKind::invalid, "this tokenizer is of kind {}", name_of(loaded->family()))
                         .hinted(fmt::format("data.tokenizer.kind: {}", name_of(loaded->family()))));
    }
    return *model;
  }

  void filter(const std::string& where) {
    if (where.empty()) return;
    if (Result<RecordFilter> parsed = RecordFilter::parse(where); !parsed.ok())
      add(std::move(parsed).error(), "data.train.where", 0);
  }

  Status finish() && {
    if (errors_.empty()) return {};
    return together(std::move(errors_));
  }

 private:
  // The same where some are objects of buckets, in the order of the patterns.
  TextFiles files_and_objects(const std::vector<std::string>& patterns, const std::string& key) {
    TextFiles all{buckets_, {}, ""};
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (!is_bucket_uri(patterns[i])) {
        for (const std::string& path : files({patterns[i]}, key).paths) all.paths.push_back("/" + path);
        continue;
      }
      const Result<StoreUri> uri = read_store_uri(patterns[i]);
      if (!uri.ok()) add(uri.error(), key, i);
      if (!uri.ok() || buckets_ == nullptr) continue;
      const auto found = buckets_->expand(patterns[i]);
      if (!found.ok()) add(found.error(), key, i);
      if (found.ok()) all.paths.insert(all.paths.end(), found->begin(), found->end());
    }
    std::set<std::string> seen;
    for (const std::string& path : all.paths) {
      if (seen.insert(path).second) continue;
      add(error(ErrorKind::invalid, "'{}' is named twice", path).hinted("remove it from one of the patterns"), key, 0);
      break;
    }
    return all;
  }
  Status check_opens(const std::string& file) const {
    Result<Bytes> size = root_.size(file);  // the size of a file; reading a pipe would block
    if (size.ok()) return root_.read(file, 0, {});
    Error why = std::move(size).error();
    if (why.hint.empty()) why.hint = "write it into a file first";
    return why;
  }
  void missing(Error error, const std::string& path, const std::string& key, std::size_t item) {
    if (error.kind == ErrorKind::not_found) {
      const bool here = !std::filesystem::path(path).is_absolute();
      error.hint = here ? fmt::format("check the name; '{}' is looked for in the folder the command runs in", path)
                        : "check the name, or make the file first";
      error.hint += brackets_hint(path);
    }
    add(std::move(error), key, item);
  }
  // Of a mixture's source, the key below it, and the place of all sources.
  void add(Error error, const std::string& key, std::size_t item) {
    constexpr std::string_view kTrain = "data.train.", kSources = "data.mixture.sources";
    const bool of_source = !source_name_.empty() && key.starts_with(kTrain);
    const std::string named =
        of_source ? fmt::format("{}.{}.{}", kSources, source_name_, key.substr(kTrain.size())) : key;
    error.message = fmt::format("{}: {}", named, error.message);
    errors_.push_back(source_.placed(std::move(error), of_source ? std::string(kSources) : key, of_source ? 0 : item));
  }

  Store& root_;
  BucketFiles* const buckets_;
  const WorkloadSource& source_;
  const std::string source_name_;
  std::vector<Error> errors_;
};

}  // namespace

Result<WorkloadTexts> text_files(const Workload& workload, Store& root, BucketFiles* buckets,
                                 const WorkloadSource& source, const std::string& run, const std::string& source_name) {
  FileCheck check(root, buckets, source, source_name);
  WorkloadTexts texts;
  texts.train = check.files(workload.data.train.files, "data.train.files");
  if (!workload.data.held_out.files.empty())
    texts.held_out = check.files(workload.data.held_out.files, "data.held_out.files");
  if (!workload.data.tokenizer.file.empty())
    texts.tokenizer_model = check.tokenizer(workload.data.tokenizer, tokenizer_use(workload.model), run);
  check.filter(workload.data.train.where);
  TRY(std::move(check).finish());
  return texts;
}

}  // namespace systole
