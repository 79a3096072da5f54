#pragma once
// Text of others as it may be shown to people: it gives away no password.

#include <string>
#include <string_view>

namespace systole {

// "https://USER:PASSWORD@HOST/" as "https://***@HOST/", wherever in the text it stands.
std::string without_passwords(std::string_view text);

}  // namespace systole
