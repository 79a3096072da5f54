#pragma once
// A JSON Web Token signed with RSA and SHA-256 (RFC 7519; RS256 of RFC 7518).

#include <string>

#include "ground/base/document.h"

namespace systole {

// `key` is a private RSA key in PEM. Errors: invalid (it is none, or has a password; the message does not repeat it).
Result<std::string> signed_jwt(const Node& header, const Node& claims, const std::string& key);

}  // namespace systole
