/* template.c - a manifest with every field and its default, to start from. */
#include "manifest/manifest.h"

const char *manifest_template(void)
{
	/* "cpus" has no spelling of its default, which is all of them. */
	return "{\n"
	       "  \"version\": \"" MANIFEST_VERSION "\",\n"
	       "  \"profile\": \"linux\",\n"
	       "  \"command\": {\"argv\": [\"/usr/bin/python3\", \"main.py\"], \"cwd\": \"/box\", \"env\": {}},\n"
	       "  \"rootfs\": \"host\",\n"
	       "  \"image\": null,\n"
	       "  \"inputs\": [\n"
	       "    {\"text\": \"print(6 * 7)\\n\", \"target\": \"/box/main.py\", \"mode\": \"0444\"}\n"
	       "  ],\n"
	       "  \"stdin\": {\"text\": \"\"},\n"
	       "  \"outputs\": {\"required\": [], \"max_files\": 64, \"max_file_bytes\": 16777216, \"max_bytes\": 67108864},\n"
	       "  \"limits\": {\n"
	       "    \"wall_ms\": 10000, \"cpu_ms\": 10000, \"cpus\": \"1\", \"pin\": null,\n"
	       "    \"memory_bytes\": 268435456, \"pids\": 64, \"open_files\": 256, \"stack_bytes\": 8388608,\n"
	       "    \"stdout_bytes\": 1048576, \"stderr_bytes\": 1048576, \"on_overflow\": \"kill\",\n"
	       "    \"work_bytes\": 67108864, \"work_inodes\": 4096, \"scratch\": \"memory\",\n"
	       "    \"on_limit_grace_ms\": 0\n"
	       "  },\n"
	       "  \"retained_output\": \"fail\",\n"
	       "  \"network\": {\"mode\": \"none\"},\n"
	       "  \"require\": [],\n"
	       "  \"cancel\": {\"grace_ms\": 2000},\n"
	       "  \"labels\": {}\n"
	       "}\n";
}
