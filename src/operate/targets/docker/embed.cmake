# cmake -DOUT=... -DTOOLS=... -P embed.cmake: writes a source file that holds tools/xla-plugins and its pins, as they are.
file(READ ${TOOLS}/xla-plugins script)
file(READ ${TOOLS}/xla-plugins.txt pins)
set(text "// Made from tools/ by embed.cmake.\n#include \"operate/targets/docker/docker.h\"\n\nnamespace systole {\n\n")
string(APPEND text "std::string_view xla_plugins_script() { return R\"~tools~(${script})~tools~\"; }\n")
string(APPEND text "std::string_view xla_plugins_pins() { return R\"~tools~(${pins})~tools~\"; }\n\n}  // namespace systole\n")
file(WRITE ${OUT} "${text}")
