#include "operate/launch/secrets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "describe/spec/secret.h"
#include "ground/process/capture.h"

namespace systole {
namespace {

using Source = SecretReference::Source;

constexpr std::size_t kMost = 64 << 10;  // bytes of a value: an environment takes no longer

Result<std::string> of_variable(const std::string& name) {
  if (const char* value = std::getenv(name.c_str()); value != nullptr) return std::string(value);
  return error(ErrorKind::unsupported, "no variable {} in the environment that starts it", name)
      .hinted(fmt::format("export {}, or file:/PATH", name));
}

// `own`: nobody else may read it. The file that is looked at is the one that is read.
Result<std::string> of_file(const std::string& path, bool own) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return error(errno == ENOENT ? ErrorKind::unsupported : ErrorKind::io, "{}: {}", path, std::strerror(errno))
        .hinted(fmt::format("(umask 077; cat > {}), on each node", path));
  struct stat status = {};
  std::string text;
  bool failed = ::fstat(file, &status) != 0;
  if (!failed && S_ISREG(status.st_mode) && !(own && (status.st_mode & 077) != 0)) {
    std::array<char, 4096> part{};
    for (ssize_t n = 0; text.size() <= kMost && (n = ::read(file, part.data(), part.size())) != 0;) {
      failed = n < 0 && errno != EINTR;
      if (failed) break;
      if (n > 0) text.append(part.data(), static_cast<std::size_t>(n));
    }
  }
  ::close(file);
  if (failed) return error(ErrorKind::io, "{} cannot be read", path);
  if (!S_ISREG(status.st_mode)) return error(ErrorKind::invalid, "{} is no file", path);
  if (own && (status.st_mode & 077) != 0)
    return error(ErrorKind::invalid, "{} may be read by others than its owner", path)
        .hinted(fmt::format("chmod 600 {}", path));
  return text;
}

// A pod has it as a file; elsewhere Google's program asks for it, whose output nobody sees.
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
  // The pod has the Secret's key in its variable.
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

}  // namespace systole
