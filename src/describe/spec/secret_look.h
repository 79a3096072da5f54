#pragma once
// Detects secrets in plain text, by name or by form. Callers never show the text.

#include <string>
#include <string_view>

namespace systole {

// "a token of Hugging Face" when the text contains a credential in a service's documented form; empty: none found.
std::string_view secret_form(std::string_view text);

// As secret_form; checks the variable's name too: "its name is that of a password". Empty: not a secret.
std::string why_secret(std::string_view name, std::string_view value);

}  // namespace systole
