#pragma once
// Secrets by reference: where a value stands, never the value.
//
//   env:NAME                                 a variable of the environment that starts it
//   file:/PATH                               a file of the node that nobody but its owner may read; its text, without
//                                            the line's end
//   kubernetes:SECRET/KEY                    a Secret of the namespace
//   secret-manager:PROJECT/NAME[/VERSION]    Google's Secret Manager; without a version the latest

#include <optional>
#include <string>
#include <string_view>

namespace systole {

struct SecretReference {
  enum class Source { environment, file, kubernetes, secret_manager } source = Source::environment;
  std::string name;              // of the variable, of the Secret, of the secret; or the path
  std::string key;               // in the Secret
  std::string project, version;  // of Secret Manager
  // projects/PROJECT/secrets/NAME/versions/VERSION
  std::string resource() const { return "projects/" + project + "/secrets/" + name + "/versions/" + version; }
};

constexpr const char* kSecretForms = "env:NAME, file:/PATH, kubernetes:SECRET/KEY or secret-manager:PROJECT/NAME";

// Nothing when it is no reference, and then it may be a secret itself: it must not be shown.
std::optional<SecretReference> read_secret_reference(std::string_view text);

// Letters, digits and '_', no digit first.
bool is_variable_name(std::string_view text);

}  // namespace systole
