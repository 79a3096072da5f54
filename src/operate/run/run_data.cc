#include "operate/run/run_data.h"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "execute/data/dataset_change.h"
#include "ground/base/clock.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/process/machine.h"
#include "ground/store/lock.h"
#include "operate/run/bucket_files.h"
#include "operate/run/data_parts.h"
#include "operate/run/job_lock.h"
#include "operate/run/run_mixture.h"
#include "operate/run/run_tokenizer.h"
#include "operate/run/store_access.h"
#include "operate/run/workload_texts.h"

namespace systole {
namespace {

TextOptions text_options(const TextSpec& spec) {
  TextOptions options;
  options.document = static_cast<DocumentRule>(spec.document);
  options.invalid_utf8 = static_cast<InvalidUtf8>(spec.invalid_utf8);
  options.format = static_cast<TextFormat>(spec.format);
  options.field = spec.field;
  options.target = spec.target;
  options.largest_document = spec.largest_document;
  options.bad_records = {static_cast<OnBadRecord>(spec.on_bad_record), spec.bad_records};
  options.where = spec.where;
  options.dedupe = spec.dedupe;
  return options;
}
static_assert(static_cast<int>(TextSpec::Document::blank_line) == static_cast<int>(DocumentRule::blank_line) &&
              static_cast<int>(TextSpec::InvalidUtf8::bytes) == static_cast<int>(InvalidUtf8::bytes) &&
              static_cast<int>(TextSpec::Format::parquet) == static_cast<int>(TextFormat::parquet) &&
              static_cast<int>(TextSpec::OnBadRecord::skip) == static_cast<int>(OnBadRecord::skip) &&
              static_cast<int>(TokenizerSpec::Kind::byte_level_bpe) ==
                  static_cast<int>(TokenizerFamily::byte_level_bpe));

}  // namespace

PackingRule packing_rule(const DataSpec& data) {
  if (data.buckets)
    return PackingRule::bucketed(
        {.edges = data.buckets->edges, .waste = data.buckets->waste, .shapes = data.buckets->shapes});
  return data.packing ? PackingPolicy::packed : PackingPolicy::padded;
}

Result<BuildOptions> build_options(const Workload& workload, BucketFiles& files, const WorkloadSource& source,
                                   const std::string& run, const std::string& source_name) {
  WorkloadTexts texts = TRY(text_files(workload, files.root(), &files, source, run, source_name));
  BuildOptions options;
  options.train = std::move(texts.train);
  options.train_text = text_options(workload.data.train);
  options.held_out = std::move(texts.held_out);
  options.held_out_text = text_options(workload.data.held_out);
  options.held_out_text.where = options.train_text.where;
  options.held_out_text.dedupe = options.train_text.dedupe;
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
  options.policy = packing_rule(workload.data);
  options.threads = allowed_cores();
  return options;
}

std::optional<bool> ended_child(const DataProgress& progress) {
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it died before that
    return std::nullopt;
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (progress) progress({}, Bytes());  // clears the child's progress bar
  return child > 0;
}

namespace {

// build_dataset in a forked child. If the child fails, this process builds, and so finds the error.
Result<Dataset> build_apart(Store& folder, BuildOptions& options) {
  bool is_copy = false;
  options.made_elsewhere = [&is_copy, &options] {
    const std::optional<bool> ended = ended_child(options.progress);
    is_copy = !ended;
    return ended.value_or(false);
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

}  // namespace

// `progress` is called while waiting and may throw.
Result<std::unique_ptr<FileLock>> lock_in_turn(const std::string& folder, const DataRequest& request) {
  return lock_folder(folder, request.patience, *real_clock(), [&](const std::string& holder) -> Status {
    if (request.progress) request.progress("waiting for " + holder, Bytes());
    return {};
  });
}

Result<Dataset> open_or_build(Store& store, const std::string& folder, const std::string& key, BuildOptions& options,
                              const DataRequest& request) {
  Result<Dataset> whole = open_dataset(store, key, options.sequence_length, options.policy);
  if (whole.ok() || whole.error().kind != ErrorKind::not_found) return whole;
  // Before the fork: its child would share the connections.
  if (auto* buckets = dynamic_cast<BucketFiles*>(options.train.store)) TRY(buckets->bring());
  if (auto* buckets = options.held_out ? dynamic_cast<BucketFiles*>(options.held_out->store) : nullptr)
    TRY(buckets->bring());
  const Seconds began = real_clock()->now();
  const std::unique_ptr<FileLock> lock = TRY(lock_in_turn(folder, request));
  Result<Dataset> built = request.apart ? build_apart(store, options) : build_dataset(store, options);
  if (auto* files = dynamic_cast<BucketFiles*>(options.train.store)) files->spent.build += real_clock()->now() - began;
  return built;
}

namespace {

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
  options.drop_remainder = data.drop_remainder;
  return options;
}

Result<std::unique_ptr<BucketFiles>> data_files(const Workload& workload, const DataProgress& progress) {
  const DataSpec& data = workload.data;
  const ObjectTierOptions cache{data.cache_folder, data.cache_limit, data.cache_memory};
  return std::make_unique<BucketFiles>(TRY(open_posix_store("/")), cache, progress, store_access());
}

static bool is_mixture(const Workload& workload) { return !workload.data.mixture.sources.empty(); }

static Result<Dataset> mixed(const Workload& workload, BucketFiles& files, const WorkloadSource& source,
                             const DataRequest& request, Data& data) {
  JoinedDatasets joined = TRY(prepare_mixture(workload, files, *data.folder, source, request));
  data.mixture = std::move(joined.mixture);
  return std::move(joined.dataset);
}

Status check_data_files(const Workload& workload, const WorkloadSource& source) {
  if (workload.data.kind != DataSpec::Kind::text) return {};
  const std::unique_ptr<Store> files = TRY(open_posix_store("/"));
  if (is_mixture(workload)) {
    std::vector<Error> errors;
    std::size_t names = 0;
    for (const Workload& one : workloads_of_sources(workload)) {
      const std::string& name = workload.data.mixture.sources[names++].name;
      if (Result<WorkloadTexts> texts = text_files(one, *files, nullptr, source, {}, name); !texts.ok())
        errors.push_back(std::move(texts).error());
    }
    return errors.empty() ? Status() : together(std::move(errors));
  }
  TRY(text_files(workload, *files, nullptr, source));
  return {};
}

Result<TextBuild> text_build_of(const Workload& workload, const WorkloadSource& source) {
  if (is_mixture(workload)) {
    return source.placed(error(ErrorKind::unsupported, "a mixture is read source by source")
                             .hinted("a workload with the files of one source as data.train"),
                         "data.mixture.sources");
  }
  std::unique_ptr<BucketFiles> files = TRY(data_files(workload, {}));
  BuildOptions options = TRY(build_options(workload, *files, source));
  return TextBuild{std::move(files), std::move(options)};
}

Result<std::string> dataset_key_of(const Workload& workload, const WorkloadSource& source) {
  const std::unique_ptr<BucketFiles> files = TRY(data_files(workload, {}));
  if (is_mixture(workload)) return TRY(mixture_inputs_of(workload, *files, source)).key;
  return TRY(dataset_inputs(TRY(build_options(workload, *files, source)))).key;
}

Result<Data> prepare_data(const Workload& workload, const WorkloadSource& source, const DataRequest& request) {
  Data data;
  if (workload.data.kind != DataSpec::Kind::text) return data;
  const Seconds began = real_clock()->now();
  raise_open_files();  // each shard is one
  std::unique_ptr<BucketFiles> opened = TRY(data_files(workload, request.progress));
  BucketFiles& files = *opened;
  data.files = std::move(opened);
  std::optional<BuildOptions> options;
  if (!is_mixture(workload))
    options = TRY(build_options(workload, files, source, request.begun.empty() ? "" : request.run));
  if (Status made = make_folders(workload.data.folder); !made.ok()) {
    Error why = std::move(made).error();
    if (why.hint.empty()) why.hint = "data.folder: a folder that may be written";
    return source.placed(std::move(why), "data.folder");
  }
  data.folder = TRY(open_posix_store(workload.data.folder));
  if (options) options->progress = request.progress;
  Result<Dataset> built = options ? dataset_of(*data.folder, workload.data.folder, *options, request)
                                  : mixed(workload, files, source, request, data);
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
  files.spent.all = real_clock()->now() - began;
  return data;
}

}  // namespace systole
