; Start-up of the load ROM: interrupt vectors, memory, and the routine that copies sprites (it must run from high RAM).
	.module start
	.globl _main
	.globl _vblanks
	.globl _timer_ticks

	.area _HEADER (ABS)
	.org 0x40
	jp vblank
	.org 0x50
	jp timer
	.org 0x100
	nop
	jp begin

	.org 0x150
begin:
	di
	ld sp, #0xC110
	ld hl, #0xC110		; clear C110-DFFF
	ld bc, #0x1EF0
clear:
	xor a
	ld (hl+), a
	dec bc
	ld a, b
	or c
	jr nz, clear
	ld hl, #copy_sprites	; to FF80
	ld c, #0x80
	ld b, #10
copy:
	ld a, (hl+)
	ldh (c), a
	inc c
	dec b
	jr nz, copy
	call _main
stop_here:
	halt
	nop
	jr stop_here

vblank:
	push af
	push hl
	ld a, #0xCB		; sprites are prepared at CB00
	call 0xFF80
	ld hl, #_vblanks
	inc (hl)
	pop hl
	pop af
	reti

timer:
	push af
	push hl
	ld hl, #_timer_ticks
	inc (hl)
	pop hl
	pop af
	reti

copy_sprites:
	ldh (0x46), a
	ld a, #0x28
wait:
	dec a
	jr nz, wait
	ret

	.area _CODE
	.area _HOME
	.area _DATA
