#pragma once
// Names of the files through which a compile and its child process communicate; compile_child.h describes them.

namespace systole::prove {

inline constexpr const char* kModuleFile = "module.mlir";
inline constexpr const char* kRequestFile = "request.json";
inline constexpr const char* kStartedFile = "started.json";
inline constexpr const char* kAnswerFile = "answer.json";
inline constexpr const char* kOptimizedFile = "optimized.pb";
inline constexpr const char* kDumpFolder = "dump";
inline constexpr const char* kOutFile = "out.txt";
inline constexpr const char* kErrFile = "err.txt";

}  // namespace systole::prove
