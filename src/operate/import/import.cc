#include "operate/import/import.h"

#include "ground/base/document.h"
#include "operate/import/manifest.h"
#include "operate/import/script.h"

namespace systole {
namespace {

constexpr std::size_t kMostText = 1 << 20;  // limit for pasted text

}  // namespace

Result<Imported> import_job(const ImportSource& source) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (source.text.starts_with(kByteOrderMark))
    return import_job({source.text.substr(kByteOrderMark.size()), source.file, source.beside});
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
  if (parse_json(source.text, source.file).ok() && source.text.find('{') != source.text.npos)
    return error(ErrorKind::invalid, "it reads as JSON, and no object of Kubernetes is in it: apiVersion and kind")
        .at({source.file})
        .hinted("paste the manifest whole, or the line that starts the program");
  const bool batch = source.text.starts_with("#SBATCH") || source.text.find("\n#SBATCH") != source.text.npos;
  read_batch_script(source, draft);
  return draft.finish(batch ? "an sbatch script" : "a command line");
}

}  // namespace systole
