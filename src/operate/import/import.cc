#include "operate/import/import.h"

#include "operate/import/manifest.h"
#include "operate/import/script.h"

namespace systole {
namespace {

constexpr std::size_t kMostText = 1 << 20;  // nobody pastes more

}  // namespace

Result<Imported> import_job(const ImportSource& source) {
  if (source.text.size() > kMostText)
    return error(ErrorKind::invalid, "{} MiB is no script and no manifest", source.text.size() >> 20).at({source.file});
  if (source.text.find_first_not_of(" \t\r\n") == source.text.npos)
    return error(ErrorKind::invalid, "there is nothing in it")
        .at({source.file})
        .hinted("an sbatch script, a line of torchrun, srun, torchx or gcloud, or a manifest of Kubernetes");
  Draft draft(source.file);
  if (is_manifest(source.text)) {
    read_manifest(source, draft);
    return draft.finish("a manifest of Kubernetes");
  }
  const bool batch = source.text.starts_with("#SBATCH") || source.text.find("\n#SBATCH") != source.text.npos;
  read_batch_script(source, draft);
  return draft.finish(batch ? "an sbatch script" : "a command line");
}

}  // namespace systole
