#pragma once

namespace systole::cli {

constexpr const char* kVersion = "systole 0.1.0";

}  // namespace systole::cli
