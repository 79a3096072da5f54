# cmake -DOUT=... -DFILE=data/perf/stacks.yaml -P embed.cmake: the file as a text in the program.
file(READ ${FILE} content)
file(WRITE ${OUT} "// Made from data/perf/stacks.yaml by embed.cmake.\nnamespace systole {\n\nextern const char* const kBuiltinStacks;\nconst char* const kBuiltinStacks = R\"~stacks~(${content})~stacks~\";\n\n}  // namespace systole\n")
