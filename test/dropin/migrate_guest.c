/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The rmem authors
 */

/* The guest of migrate.py: a kernel of 32 bits that QEMU loads by Multiboot. Its memory is pages of
 * which each word depends on the page and the round that wrote it. Each round verifies all pages,
 * writes some again, and sends a line "round N" on the serial port, or "bad page N" and no more. */

#include <stddef.h>
#include <stdint.h>

#define MULTIBOOT_MAGIC 0x1badb002u
#define SERIAL          0x3f8
#define SERIAL_STATUS   (SERIAL + 5)
#define SERIAL_EMPTY    0x20

#define MEMORY   ((volatile uint32_t *)(4u << 20)) /* to 60 MiB, of 64 */
#define NB_PAGES (56u << 8)
#define WORDS    1024u
#define STEP     53u /* every such page is written again in a round */

void start(void) __attribute__((noreturn));

__attribute__((section(".multiboot"), used)) static const uint32_t header[] = {
		MULTIBOOT_MAGIC, 0, 0u - MULTIBOOT_MAGIC};

static void
put(char c)
{
	uint8_t status;

	do {
		__asm__ volatile("inb %1, %0" : "=a"(status) : "Nd"((uint16_t)SERIAL_STATUS));
	} while ((status & SERIAL_EMPTY) == 0);
	__asm__ volatile("outb %0, %1" : : "a"(c), "Nd"((uint16_t)SERIAL));
}

static void
put_line(const char *text, uint32_t n)
{
	char digits[10];
	size_t len = 0;

	for (; *text != '\0'; text++)
		put(*text);
	do {
		digits[len++] = (char)('0' + n % 10);
		n /= 10;
	} while (n != 0);
	while (len > 0)
		put(digits[--len]);
	put('\n');
}

static uint32_t
mix(uint32_t page, uint32_t round, uint32_t word)
{
	return (page * 2654435761u) ^ (round * 40503u + word * 69069u);
}

static void
page_write(uint32_t page, uint32_t round)
{
	volatile uint32_t *at = MEMORY + page * WORDS;
	uint32_t word;

	at[0] = round;
	for (word = 1; word < WORDS; word++)
		at[word] = mix(page, round, word);
}

static void
page_verify(uint32_t page, uint32_t last)
{
	const volatile uint32_t *at = MEMORY + page * WORDS;
	uint32_t round = at[0], word;

	for (word = 1; word < WORDS && at[word] == mix(page, round, word); word++)
		;
	if (word == WORDS && round <= last &&
			(last == 0 || page % STEP != last % STEP || round == last))
		return;
	put_line("bad page ", page);
	for (;;)
		__asm__ volatile("hlt");
}

void
start(void)
{
	uint32_t page, round;

	for (page = 0; page < NB_PAGES; page++)
		page_write(page, 0);
	for (round = 0;;) {
		put_line("round ", round);
		for (page = 0; page < NB_PAGES; page++)
			page_verify(page, round);
		round++;
		for (page = round % STEP; page < NB_PAGES; page += STEP)
			page_write(page, round);
	}
}

__asm__(".globl _start\n"
	"_start: mov $0x180000, %esp\n"
	"call start\n");
