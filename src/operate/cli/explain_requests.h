#pragma once
// `systole explain ACCESS_LOG`: where the time of a server's requests went.

#include <string>

#include "operate/cli/command.h"

namespace systole::cli {

// Whether the word is a file or folder, or can be nothing else.
bool names_access_log(const std::string& word);

// Of the file, or of `access.log` in the folder. Errors: not_found; invalid: it is no access log, or has no request that
// the model answered; io.
ExitCode explain_requests(const std::string& path, Context& context);

}  // namespace systole::cli
