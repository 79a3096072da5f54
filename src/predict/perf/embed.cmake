# cmake -DOUT=... -DROOT=... -DFILE=data/perf/stacks.yaml -DNAME=kBuiltinStacks -P embed.cmake: the file as a text in
# the program.
file(READ ${ROOT}/${FILE} content)
file(WRITE ${OUT} "// Made from ${FILE} by embed.cmake.\nnamespace systole {\n\nextern const char* const ${NAME};\nconst char* const ${NAME} = R\"~file~(${content})~file~\";\n\n}  // namespace systole\n")
