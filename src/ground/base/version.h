#pragma once
// The version of Systole. Written into plans, locks and rendered files, and compared when nodes join a run.

namespace systole {

inline constexpr const char* kSystoleVersion = "systole 0.1.0";

}  // namespace systole
