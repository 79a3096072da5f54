#pragma once
// Whether a text that stands in the open is a secret, by its name or by its form. Who asks never shows the text.

#include <string>
#include <string_view>

namespace systole {

// "a token of Hugging Face", where the text holds what a service gives out in that form; empty: nothing known.
std::string_view secret_form(std::string_view text);

// The same, and for any text what the variable is called: "its name is that of a password". Empty: it is no secret.
std::string why_secret(std::string_view name, std::string_view value);

}  // namespace systole
