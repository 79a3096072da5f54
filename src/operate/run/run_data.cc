#include "operate/run/run_data.h"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "execute/data/dataset_change.h"
#include "execute/data/file_patterns.h"
#include "execute/weights/hf_folder.h"
#include "ground/base/clock.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/process/machine.h"
#include "ground/store/lock.h"
#include "operate/observe/run_files.h"
#include "operate/run/job_lock.h"
#include "operate/run/run_tokenizer.h"

namespace systole {
namespace {

// Converts absolute paths to paths of the store at "/".
std::vector<std::string> below_root(const std::vector<std::string>& paths) {
  std::vector<std::string> result;
  for (const std::string& path : paths) result.push_back(absolute_path(path).value().substr(1));
  return result;
}

TextOptions text_options(const TextSpec& spec) {
  TextOptions options;
  options.document = static_cast<DocumentRule>(spec.document);
  options.invalid_utf8 = static_cast<InvalidUtf8>(spec.invalid_utf8);
  options.format = static_cast<TextFormat>(spec.format);
  options.field = spec.field;
  options.target = spec.target;
  options.largest_document = spec.largest_document;
  return options;
}
static_assert(static_cast<int>(TextSpec::Document::blank_line) == static_cast<int>(DocumentRule::blank_line) &&
              static_cast<int>(TextSpec::InvalidUtf8::bytes) == static_cast<int>(InvalidUtf8::bytes) &&
              static_cast<int>(TextSpec::Format::jsonl) == static_cast<int>(TextFormat::jsonl) &&
              static_cast<int>(TokenizerSpec::Kind::byte_level_bpe) ==
                  static_cast<int>(TokenizerFamily::byte_level_bpe));

// The tokenizer kept in a run's folder; nothing: it has none, or `run` is empty.
Result<std::optional<std::string>> tokenizer_in(const std::string& run) {
  if (run.empty() || !path_exists(run + "/" + RunFiles::tokenizer)) return std::optional<std::string>();
  const std::unique_ptr<Store> store = TRY(open_posix_store(run));
  return std::optional<std::string>(TRY(read_text(*store, RunFiles::tokenizer)));
}

// Collects the errors of a workload's files, to report all at once.
class FileCheck {
 public:
  FileCheck(Store& root, const WorkloadSource& source) : root_(root), source_(source) {}

  // The files of one text. `key`: their key in the workload.
  TextFiles files(const std::vector<std::string>& patterns, const std::string& key) {
    const std::vector<std::string> below = below_root(patterns);
    const std::size_t before = errors_.size();
    for (std::size_t i = 0; i < below.size(); ++i) {
      const auto found = expand_files(root_, {below[i]}, "/");
      if (!found.ok()) {
        missing(found.error(), patterns[i], key, i);
      } else if (is_folder(patterns[i])) {
        add(error(ErrorKind::invalid, "'/{}' is a folder", below[i])
                .hinted(fmt::format("name its files: {}/*.txt", patterns[i])),
            key, i);
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

  Status finish() && {
    if (errors_.empty()) return {};
    return together(std::move(errors_));
  }

 private:
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
  void add(Error error, const std::string& key, std::size_t item) {
    error.message = fmt::format("{}: {}", key, error.message);
    errors_.push_back(source_.placed(std::move(error), key, item));
  }

  Store& root_;
  const WorkloadSource& source_;
  std::vector<Error> errors_;
};

struct WorkloadTexts {
  TextFiles train;
  std::optional<TextFiles> held_out;
  std::optional<std::string> tokenizer_model;
};

// `run`: the folder of a run that goes on; otherwise empty. REQUIRES: the data is text. The result borrows `root`, the
// store at "/".
Result<WorkloadTexts> text_files(const Workload& workload, Store& root, const WorkloadSource& source,
                                 const std::string& run = {}) {
  FileCheck check(root, source);
  WorkloadTexts texts;
  texts.train = check.files(workload.data.train.files, "data.train.files");
  if (!workload.data.held_out.files.empty())
    texts.held_out = check.files(workload.data.held_out.files, "data.held_out.files");
  if (!workload.data.tokenizer.file.empty())
    texts.tokenizer_model = check.tokenizer(workload.data.tokenizer, tokenizer_use(workload.model), run);
  TRY(std::move(check).finish());
  return texts;
}

Result<BuildOptions> build_options(const Workload& workload, Store& root, const WorkloadSource& source,
                                   const std::string& run = {}) {
  WorkloadTexts texts = TRY(text_files(workload, root, source, run));
  BuildOptions options;
  options.train = std::move(texts.train);
  options.train_text = text_options(workload.data.train);
  options.held_out = std::move(texts.held_out);
  options.held_out_text = text_options(workload.data.held_out);
  options.held_out_fraction = workload.data.held_out_fraction;
  options.seed = static_cast<std::uint64_t>(workload.data.seed);
  options.tokenizer.kind = workload.data.tokenizer.algorithm == TokenizerSpec::Algorithm::unigram
                               ? TokenizerKind::unigram
                               : TokenizerKind::bpe;
  options.tokenizer.vocabulary = static_cast<int>(workload.data.tokenizer.vocabulary);
  options.tokenizer.sample = workload.data.tokenizer.sample;
  options.tokenizer_model = std::move(texts.tokenizer_model);
  options.target_length = workload.model.target_context();
  options.sequence_length = workload.model.context() + options.target_length;
  options.policy = workload.data.packing ? PackingPolicy::packed : PackingPolicy::padded;
  options.threads = allowed_cores();
  return options;
}

// build_dataset in a forked child. If the child fails, this process builds, and so finds the error.
Result<Dataset> build_apart(Store& folder, BuildOptions& options) {
  bool is_copy = false;
  options.made_elsewhere = [&is_copy, &options] {
    const pid_t copy = fork();
    if (copy == 0) {
      is_copy = true;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      return false;
    }
    int status = 0;
    while (copy > 0 && waitpid(copy, &status, 0) < 0 && errno == EINTR) continue;
    if (options.progress) options.progress({}, Bytes());  // clears the child's progress bar
    return copy > 0;
  };
  try {
    Result<Dataset> built = build_dataset(folder, options);
    if (is_copy) _exit(built.ok() ? 0 : 1);
    return built;
  } catch (...) {
    if (is_copy) _exit(1);
    throw;
  }
}

// The lock for building in the folder, after its current holder has finished or died. `progress` is called while
// waiting and may throw.
Result<std::unique_ptr<FileLock>> lock_in_turn(const std::string& folder, const DataRequest& request) {
  return lock_folder(folder, request.patience, *real_clock(), [&](const std::string& holder) -> Status {
    if (request.progress) request.progress("waiting for " + holder, Bytes());
    return {};
  });
}

// Complete datasets are opened by any number of processes at once; one process at a time builds in a folder.
Result<Dataset> open_or_build(Store& store, const std::string& folder, const std::string& key, BuildOptions& options,
                              const DataRequest& request) {
  Result<Dataset> whole = open_dataset(store, key, options.sequence_length, options.policy);
  if (whole.ok() || whole.error().kind != ErrorKind::not_found) return whole;
  const std::unique_ptr<FileLock> lock = TRY(lock_in_turn(folder, request));
  return request.apart ? build_apart(store, options) : build_dataset(store, options);
}

// The dataset `begun`, or one with the same tokens from another version.
Result<Dataset> dataset_of(Store& store, const std::string& folder, BuildOptions& options, const DataRequest& request) {
  const DatasetInputs inputs = TRY(dataset_inputs(options));
  const auto refused = [&](const DatasetChange& other) {
    return error(ErrorKind::invalid, "{}", other.told()).hinted(begin_anew("it", request.run));
  };
  if (!request.begun.empty())
    if (const auto other = other_inputs(store, request.begun, inputs)) return refused(*other);
  Dataset dataset = TRY(open_or_build(store, folder, inputs.key, options, request));
  if (!request.begun.empty())
    if (const auto other = other_tokens(store, request.begun, dataset.manifest)) return refused(*other);
  return dataset;
}

}  // namespace

Bytes Data::resident() const {
  Bytes bytes;
  if (!dataset) return bytes;
  if (dataset->train) bytes += dataset->train->resident();
  if (dataset->held_out) bytes += dataset->held_out->resident();
  return bytes;
}

// Token 0 is a BERT's mask and the first target token of a T5; bos separates a pair.
static Status check_marks(const Workload& workload, const Tokenizer& tokenizer, const WorkloadSource& source) {
  if (workload.model.task() != Task::masked && workload.model.task() != Task::pairs) return {};
  if (tokenizer.bytes_of(0).empty() && tokenizer.eos() != 0 && tokenizer.bos() != tokenizer.eos()) return {};
  return source.placed(
      error(ErrorKind::unsupported,
            "this tokenizer of kind {} has no mark at token 0 beside its bos and eos, which a bert's masks and a t5's "
            "pairs need",
            name_of(tokenizer.family()))
          .hinted("data.tokenizer: { kind: sentencepiece, vocabulary: 8192 } trains one that has"),
      "data.tokenizer.kind");
}

std::optional<Error> Data::cut_pairs() const {
  if (!dataset || dataset->manifest.cut == 0) return std::nullopt;
  const TokensManifest& m = dataset->manifest;
  return error(ErrorKind::invalid, "{} of {} are longer than their rows and were cut", with_commas(m.cut),
               counted(m.train.documents + m.held_out.documents, "pair"))
      .hinted("a larger model.context or model.target_context, or a larger vocabulary, whose tokens are longer");
}

RowReaderOptions row_options(const Workload& workload, const Tokenizer& tokenizer, std::int64_t batch_rows,
                             RowPass pass) {
  RowReaderOptions options;
  const DataSpec& data = workload.data;
  if (workload.model.task() == Task::masked) {
    options.masking = Masking{data.masked_share,     data.masked_hidden,
                              data.masked_random,    static_cast<std::uint64_t>(data.seed),
                              tokenizer.eos(),       std::max(tokenizer.bos(), tokenizer.eos()) + 1,
                              tokenizer.vocabulary()};
  }
  options.target_length = workload.model.target_context();
  options.batch_rows = batch_rows;
  options.pass = pass;
  options.seed = static_cast<std::uint64_t>(workload.data.seed);
  return options;
}

Status check_data_files(const Workload& workload, const WorkloadSource& source) {
  if (workload.data.kind != DataSpec::Kind::text) return {};
  const std::unique_ptr<Store> files = TRY(open_posix_store("/"));
  TRY(text_files(workload, *files, source));
  return {};
}

Result<std::string> dataset_key_of(const Workload& workload, const WorkloadSource& source) {
  const std::unique_ptr<Store> files = TRY(open_posix_store("/"));
  return TRY(dataset_inputs(TRY(build_options(workload, *files, source)))).key;
}

Result<Data> prepare_data(const Workload& workload, const WorkloadSource& source, const DataRequest& request) {
  Data data;
  if (workload.data.kind != DataSpec::Kind::text) return data;
  data.files = TRY(open_posix_store("/"));
  const std::string goes_on = request.begun.empty() ? "" : request.run;
  BuildOptions options = TRY(build_options(workload, *data.files, source, goes_on));
  if (Status made = make_folders(workload.data.folder); !made.ok()) {
    Error why = std::move(made).error();
    if (why.hint.empty()) why.hint = "data.folder: a folder that may be written";
    return source.placed(std::move(why), "data.folder");
  }
  data.folder = TRY(open_posix_store(workload.data.folder));
  options.progress = request.progress;
  Result<Dataset> built = dataset_of(*data.folder, workload.data.folder, options, request);
  if (!built.ok() && built.error().kind == ErrorKind::invalid) return source.placed_or(built.error(), "data");
  if (!built.ok()) return built.error();
  data.dataset = *std::move(built);
  if (data.dataset->tokenizer.vocabulary() > workload.model.vocabulary()) {
    return source.placed(error(ErrorKind::invalid, "model.vocabulary is {}, the tokenizer has {}",
                               workload.model.vocabulary(), counted(data.dataset->tokenizer.vocabulary(), "token"))
                             .hinted(fmt::format("model.vocabulary: {} or more", data.dataset->tokenizer.vocabulary())),
                         "model.vocabulary");
  }
  TRY(check_marks(workload, data.dataset->tokenizer, source));
  malloc_trim(0);  // returns the builder's memory to the system
  return data;
}

}  // namespace systole
