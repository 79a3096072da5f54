#pragma once
// References to secrets. A workload holds where a secret is stored, never its value.
//
//   env:NAME                                 a variable of the environment of the starting process
//   file:/PATH                               a file of the node, readable by its owner only; its text without the
//                                            final newline
//   kubernetes:SECRET/KEY                    a Secret of the namespace
//   secret-manager:PROJECT/NAME[/VERSION]    Google's Secret Manager; without a version the latest

#include <optional>
#include <string>
#include <string_view>

namespace systole {

struct SecretReference {
  enum class Source { environment, file, kubernetes, secret_manager } source = Source::environment;
  std::string name;              // of the variable, the Kubernetes Secret, or the secret of Secret Manager; or the path
  std::string key;               // in the Kubernetes Secret
  std::string project, version;  // of Secret Manager
  // projects/PROJECT/secrets/NAME/versions/VERSION
  std::string resource() const { return "projects/" + project + "/secrets/" + name + "/versions/" + version; }
};

constexpr const char* kSecretForms = "env:NAME, file:/PATH, kubernetes:SECRET/KEY or secret-manager:PROJECT/NAME";

// Nothing when the text is not a reference. Do not show such a text: it may be the secret itself.
std::optional<SecretReference> read_secret_reference(std::string_view text);

// Letters, digits and '_', not starting with a digit.
bool is_variable_name(std::string_view text);

}  // namespace systole
