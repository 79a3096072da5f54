#include "operate/launch/secrets.h"

#include <sys/stat.h>

#include <cstdlib>

#include "describe/spec/secret.h"
#include "ground/base/text_file.h"
#include "ground/process/capture.h"

namespace systole {
namespace {

using Source = SecretReference::Source;

constexpr std::size_t kMost = 64 << 10;  // bytes of a value; limit of an environment

Result<std::string> of_variable(const std::string& name) {
  if (const char* value = std::getenv(name.c_str()); value != nullptr) return std::string(value);
  return error(ErrorKind::unsupported, "no variable {} in the environment that starts it", name)
      .hinted(fmt::format("export {}, or file:/PATH", name));
}

// `own`: fails if others may read the file.
Result<std::string> of_file(const std::string& path, bool own) {
  Result<std::string> text = read_secret_file(path, Bytes(2 * kMost), !own);
  if (text.ok() || text.error().kind != ErrorKind::not_found) return text;
  return error(ErrorKind::unsupported, "{}", text.error().message)
      .hinted(fmt::format("(umask 077; cat > {}), on each node", path));
}

// A pod has it as a file; elsewhere `gcloud` is called, and its output is not shown.
Result<std::string> of_secret_manager(const std::string& name, const SecretReference& reference) {
  if (const char* folder = std::getenv("SYSTOLE_SECRETS"); folder != nullptr)
    return of_file(fmt::format("{}/{}", folder, name), false);
  Command command;
  command.argv = {"gcloud",
                  "secrets",
                  "versions",
                  "access",
                  reference.version,
                  "--secret=" + reference.name,
                  "--project=" + reference.project,
                  "--quiet"};
  Result<Captured> got = run_captured(std::move(command), {.limit = Bytes(2 * kMost), .timeout = Seconds(60.0)});
  if (!got.ok())
    return error(ErrorKind::unsupported, "there is no gcloud to ask Secret Manager with")
        .hinted("gcloud in PATH, or file:/PATH");
  if (got->timed_out) return error(ErrorKind::io, "gcloud gave no answer in 60 s");
  if (!got->exit.ok())
    return error(ErrorKind::unsupported, "gcloud may not read {}", reference.resource())
        .hinted(fmt::format("gcloud secrets versions access {} --secret={} --project={} >/dev/null says why",
                            reference.version, reference.name, reference.project));
  return std::move(got->out);
}

Result<std::string> value_of(const std::string& name, const SecretReference& reference) {
  switch (reference.source) {
    case Source::environment: return of_variable(reference.name);
    case Source::file: return of_file(reference.name, true);
    case Source::secret_manager: return of_secret_manager(name, reference);
    case Source::kubernetes: break;
  }
  // The pod's variable has the Secret's value.
  if (const char* value = std::getenv(name.c_str()); value != nullptr) return std::string(value);
  return error(ErrorKind::unsupported, "kubernetes:{}/{} is there in a pod alone", reference.name, reference.key)
      .hinted("here: env:NAME or file:/PATH, by an environment of the workload (--env)");
}

Result<std::string> checked(std::string value) {
  while (value.ends_with('\n') || value.ends_with('\r')) value.pop_back();
  if (value.empty()) return error(ErrorKind::invalid, "there is nothing in it");
  if (value.size() > kMost) return error(ErrorKind::invalid, "it has more than 64 KiB");
  if (value.find('\0') != value.npos) return error(ErrorKind::invalid, "it has a NUL, which no variable can hold");
  return value;
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> read_secrets(const Workload& workload) {
  std::vector<std::pair<std::string, std::string>> secrets;
  for (const auto& [name, text] : workload.secrets) {
    const std::optional<SecretReference> reference = read_secret_reference(text);
    CHECK(reference, "the schema let a secret through that is no reference");
    Result<std::string> value = value_of(name, *reference);
    if (value.ok()) value = checked(std::move(*value));
    if (!value.ok()) {
      Error wrong = std::move(value).error();
      wrong.message = fmt::format("the secret {} ({}): {}", name, text, wrong.message);
      return wrong;
    }
    secrets.emplace_back(name, std::move(*value));
  }
  return secrets;
}

void keep_to_owner(const Workload& workload) {
  const CheckpointSpec& keys = workload.checkpoint;
  if (workload.secrets.empty() && keys.encryption_key.empty() && keys.signing_key.empty()) return;
  ::umask(::umask(077) | 077);
}

}  // namespace systole
