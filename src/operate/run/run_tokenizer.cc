#include "operate/run/run_tokenizer.h"

#include "ground/base/hash.h"
#include "ground/base/shell_quoted.h"
#include "operate/observe/run_files.h"
#include "operate/run/job_lock.h"

namespace systole {
namespace {

// The hash in tokenizer.json; empty if there is none.
Result<std::string> kept_hash(Store& run) {
  if (!TRY(run.exists(RunFiles::tokenizer_about))) return std::string();
  const Result<Node> about = parse_json(TRY(read_text(run, RunFiles::tokenizer_about)), RunFiles::tokenizer_about);
  const Node* hash = about.ok() ? about->find("hash") : nullptr;
  if (hash != nullptr) return hash->text();
  return error(ErrorKind::corrupt, "this file does not tell the hash of the run's tokenizer")
      .at({RunFiles::tokenizer_about})
      .hinted("remove it and `systole resume` the run: it is written again");
}

}  // namespace

Status keep_tokenizer(Store& run, const std::string& folder, const Dataset& dataset) {
  const std::string hash = to_hex(dataset.tokenizer.hash());
  if (const std::string kept = TRY(kept_hash(run)); !kept.empty() && kept != hash) {
    return error(ErrorKind::invalid, "'{}' was begun with another tokenizer than the data has now", folder)
        .hinted(begin_anew("the data and data.tokenizer", folder));
  }
  TRY(write_whole(run, RunFiles::tokenizer, dataset.tokenizer.model()));
  const Node about =
      Node::map({{"hash", hash}, {"vocabulary", dataset.tokenizer.vocabulary()}, {"dataset", dataset.manifest.key}});
  return write_whole(run, RunFiles::tokenizer_about, to_json(about, 2) + "\n");
}

TokenizerUse tokenizer_use(const ModelSpec& model) {
  return model.task() == Task::pairs ? TokenizerUse::pairs : TokenizerUse::documents;
}

Result<Tokenizer> kept_tokenizer(const RunPlace& run) {
  const Workload workload = TRY(trained_workload_of(run));
  if (workload.data.kind != DataSpec::Kind::text) {
    return error(ErrorKind::invalid, "'{}' was not trained on text: there is none to generate", run.path)
        .hinted("name a run of a model of family gpt; 'systole runs' lists those there are");
  }
  const std::string hash = TRY(kept_hash(*run.store));
  if (hash.empty() || !TRY(run.store->exists(RunFiles::tokenizer))) {
    return error(ErrorKind::not_found, "'{}' does not hold its tokenizer", run.path)
        .at({run.path + "/" + RunFiles::tokenizer})
        .hinted(fmt::format("systole resume {} puts it there, out of the run's data", shell_word(run.path)));
  }
  std::string model = TRY(read_text(*run.store, RunFiles::tokenizer));
  if (const std::string now = to_hex(hash128(model)); now != hash) {
    return error(ErrorKind::corrupt, "the run's tokenizer hashes to {}, not to the {} of {}", now, hash,
                 RunFiles::tokenizer_about)
        .at({run.path + "/" + RunFiles::tokenizer})
        .hinted(fmt::format("copy it back, or `systole resume {}`: it is written again out of the run's data",
                            shell_word(run.path)));
  }
  Result<Tokenizer> tokenizer = Tokenizer::load(std::move(model), tokenizer_use(workload.model));
  if (tokenizer.ok()) return tokenizer;
  return std::move(tokenizer).error().at({run.path + "/" + RunFiles::tokenizer});
}

}  // namespace systole
