/* Object slots: people, treasures on the ground, drops, puffs, shots. */
#include "game.h"

enum { PUFF_FRAMES = 16, SHOT_FRAMES = 70, DROP_FRAMES = 240, TAKE_DISTANCE = 12 };

const i8 step_x[4] = {0, 1, 0, -1};
const i8 step_y[4] = {-1, 0, 1, 0};

Object *object_spawn(Object *slot, u8 id, u8 pos) {
    slot->enabled = 1;
    slot->id = id;
    slot->subid = slot->var03 = 0;
    slot->state = 8;
    slot->direction = DOWN;
    slot->x = ((pos & 15) << 4) + 8;
    slot->y = (pos & 0xF0) + 8;
    slot->z = 0;
    slot->half_width = slot->half_height = 6;
    slot->counter1 = 1;
    slot->visible = 0x80;
    slot->collision_type = 0;
    slot->invincibility = slot->knockback = slot->health = 0;
    slot->damage = 0;
    slot->treasure_taken = slot->pressed_a = 0;
    return slot;
}

/* Returns 0 when all slots are taken. */
Object *part_spawn(u8 id, u8 subid, u8 x, u8 y) {
    u8 n;
    Object *part;
    for (n = 0; n < PARTS; ++n) {
        part = part_slot(n);
        if (part->enabled) continue;
        object_spawn(part, id, 0);
        part->subid = subid;
        part->x = x;
        part->y = y;
        part->counter1 = id == PART_PUFF ? PUFF_FRAMES : id == PART_SHOT ? SHOT_FRAMES : DROP_FRAMES;
        return part;
    }
    return 0;
}

u8 is_near(const Object *object, u8 x, u8 y, u8 distance) {
    u8 dx = object->x > x ? object->x - x : x - object->x;
    u8 dy = object->y > y ? object->y - y : y - object->y;
    return dx < distance && dy < distance;
}

/* Is this pixel of the room solid for the hero? Holes, water and the border are not. */
u8 is_solid(u8 x, u8 y) {
    u8 value = room_collisions[(y & 0xF0) | (x >> 4)], quarter = 8;
    if (!value || value >= SOLID_HAZARD) return 0;
    if (value == SOLID_FULL) return 1;
    if (x & 8) quarter >>= 1;
    if (y & 8) quarter >>= 2;
    return value & quarter;
}

static void take_drop(const Object *drop) {
    switch (drop->subid) {
    case DROP_HEART:
        give(T_HEART, 4);
        break;
    case DROP_RUPEE:
        give(T_RUPEES, 1);
        break;
    case DROP_FIVE:
        give(T_RUPEES, 5);
        break;
    default:
        give(T_BOMBS, 4);
        sound(SOUND_MINOR_ITEM);
    }
}

static void shot_update(Object *shot) {
    shot->x += step_x[shot->direction] << 1;
    shot->y += step_y[shot->direction] << 1;
    if (room_collisions[(shot->y & 0xF0) | (shot->x >> 4)] & 0x0F) shot->enabled = 0;
    if (sword_timer && is_near(shot, weapon.x, weapon.y, 10)) {
        shot->enabled = 0;
        part_spawn(PART_PUFF, 0, shot->x, shot->y);
        return;
    }
    if (hero.z > -8 && is_near(shot, hero.x, hero.y, 9)) {
        hero_hurt(2, shot->direction);
        shot->enabled = 0;
    }
}

void parts_update(void) {
    u8 n;
    Object *part;
    for (n = 0; n < PARTS; ++n) {
        part = part_slot(n);
        if (!part->enabled) continue;
        if (!--part->counter1) part->enabled = 0;
        if (part->id == PART_SHOT) shot_update(part);
        if (part->id == PART_DROP && is_near(part, hero.x, hero.y, TAKE_DISTANCE)) {
            part->enabled = 0;
            take_drop(part);
        }
    }
}

static const u8 *script_of(const Object *object) { return (const u8 *)(object->counter1 | ((u16)object->counter2 << 8)); }

/* Treasures on the ground are taken by walking over them. */
void people_update(void) {
    u8 n;
    Object *object;
    for (n = 0; n < PEOPLE; ++n) {
        object = person_slot(n);
        if (!object->enabled) continue;
        object->pressed_a = 0;
        if (object->id == PERSON || !object->state || !is_near(object, hero.x, hero.y, TAKE_DISTANCE)) continue;
        object->enabled = 0;
        *room_flags() |= object->treasure_taken;
        script_start(script_of(object));
        return;
    }
}

/* Talk to the person at a cell. */
u8 person_talk(u8 pos) {
    u8 n;
    Object *person;
    for (n = 0; n < PEOPLE; ++n) {
        person = person_slot(n);
        if (!person->enabled || person->id != PERSON) continue;
        if ((u8)((person->y & 0xF0) | (person->x >> 4)) != pos) continue;
        person->pressed_a = 1;
        script_start(script_of(person));
        return 1;
    }
    return 0;
}
